"""The paper's condition on the learning rate, and by how much a rate breaks it.

Lemma 5 and Theorem 1 add the J clients' deltas and require λ ≤ 1/(6 L J I) (Lemma 6 and a line of the proof of Lemma 5
print C for J). A server that averages them moves J times less; for it the same condition reads λ ≤ 1/(6 L I).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from asyncfed.theory.bounds.argument_meanings import explain_arguments
from asyncfed.theory.bounds.arguments import Curve, as_curve, count, in_range, number


@explain_arguments(cohort_size="J ≥ 1, the clients merged in one round.")
def largest_paper_learning_rate(*, smoothness: float, cohort_size: int, local_steps: int) -> float:
    """1/(6 L J I), as printed in Lemma 5.

    >>> f"{largest_paper_learning_rate(smoothness=12.0639, cohort_size=5, local_steps=50):.6g}"
    '5.52613e-05'
    """
    clients = count("cohort_size", cohort_size, at_least=1)
    return 1 / (6 * number("smoothness", smoothness, above=0) * clients * count("local_steps", local_steps, at_least=1))


@explain_arguments()
def largest_averaging_learning_rate(*, smoothness: float, local_steps: int) -> float:
    """1/(6 L I): the condition of Lemma 5 read for a server that averages the J deltas.

    >>> largest_averaging_learning_rate(smoothness=1, local_steps=1)
    0.16666666666666666
    """
    return largest_paper_learning_rate(smoothness=smoothness, cohort_size=1, local_steps=local_steps)


@explain_arguments(
    learning_rate="λ > 0 of the local steps, a number or an array of rates to compare.",
    cohort_size="J ≥ 1, the clients merged in one round.",
)
def step_excess(*, learning_rate: ArrayLike, smoothness: float, cohort_size: int, local_steps: int) -> Curve:
    """6 L J I λ: the factor by which a rate exceeds the paper's condition; up to 1 it is met.

    With `cohort_size=1` it is the factor for a server that averages.

    >>> f"{step_excess(learning_rate=1e-3, smoothness=12.0639, cohort_size=5, local_steps=350):.4g}"
    '126.7'
    """
    limit = largest_paper_learning_rate(smoothness=smoothness, cohort_size=cohort_size, local_steps=local_steps)
    return as_curve(in_range("learning_rate", learning_rate, above=0) / limit)


@explain_arguments(
    base_learning_rate="γ_0 > 0, the rate of round 1.", cohort_size="J ≥ 1, the clients merged in one round."
)
def met_from_round(*, base_learning_rate: float, smoothness: float, cohort_size: int, local_steps: int) -> int:
    """The first round, counted from 1, in which γ_0/√round meets the paper's condition: ⌈(6 L J I γ_0)²⌉, at least 1.

    >>> met_from_round(base_learning_rate=1e-3, smoothness=12.0639, cohort_size=5, local_steps=50)
    328
    """
    excess = step_excess(
        learning_rate=base_learning_rate, smoothness=smoothness, cohort_size=cohort_size, local_steps=local_steps
    )
    return max(1, int(np.ceil(excess**2 * (1 - 1e-12))))
