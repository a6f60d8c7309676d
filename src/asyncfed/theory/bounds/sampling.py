"""Lemmas 3 and 4: what drawing clients without replacement does to a sum of their vectors.

All of Lemmas 3 and 4 is right as printed but for misprints in two lines of the appendix, which are kept here to be
shown. Vectors x_1 … x_C have mean x̄ and variance ν² = (1/C) Σ ‖x_k − x̄‖²; a random order ψ of them is drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.argument_meanings import explain_arguments
from asyncfed.theory.bounds.arguments import as_numbers, cohort, count, number

SEVERAL = "C ≥ 2, all clients."


def population_variance(values: ArrayLike) -> float:
    """ν² = (1/m) Σ ‖x_k − x̄‖² (Lemma 3). `values`: m numbers, or m rows.

    >>> population_variance([1, 2, 4, 8, 10])
    12.0

    Returns:
        The value of the formula.
    """
    rows = as_numbers("values", values)
    if rows.ndim == 0 or len(rows) == 0:
        raise ConfigError(f"values is {values!r}, but must be at least one number, or one row, in a list or an array.")
    return float(np.sum((rows - rows.mean(axis=0)) ** 2) / len(rows))


@explain_arguments(sample_size="s ≥ 1, how many are drawn.")
def variance_with_replacement(*, variance: float, sample_size: int) -> float:
    """ν²/s, the variance of the mean of s draws with replacement (Lemma 3, eq. 11).

    >>> variance_with_replacement(variance=12, sample_size=2)
    6.0
    """
    return number("variance", variance, at_least=0) / count("sample_size", sample_size, at_least=1)


@explain_arguments()
def variance_without_replacement(*, variance: float, sample_size: int, population: int) -> float:
    """(m−s)/(s(m−1)) ν², the variance of the mean of s of m without replacement (Lemma 3, eq. 12); 0 for m = 1.

    >>> variance_without_replacement(variance=12, sample_size=2, population=5)
    4.5
    """
    members = count("population", population, at_least=1)
    size = count("sample_size", sample_size, at_least=1, at_most=members, advice="No more can be drawn than there are.")
    spread = number("variance", variance, at_least=0)
    return (members - size) / (size * (members - 1)) * spread if members > 1 else 0.0


@explain_arguments(
    position="c in 1 … C, the client's place in the drawn order.",
    local_step="i in 0 … I − 1.",
    num_clients=SEVERAL,
)
def cross_term(*, position: int, local_step: int, local_steps: int, num_clients: int, variance: float) -> float:
    """2 I i E⟨Σ_{k<c} (x_ψk − x̄), x_ψc − x̄⟩ = −2 (c−1)/(C−1) I i ν² (Lemma 4, as printed; "m with c" reads m with C).

    >>> cross_term(position=4, local_step=3, local_steps=5, num_clients=6, variance=2)
    -36.0
    """
    clients = count("num_clients", num_clients, at_least=2)
    place = count("position", position, at_least=1, at_most=clients)
    steps = count("local_steps", local_steps, at_least=1)
    step = count("local_step", local_step, at_most=steps - 1)
    return -2 * (place - 1) / (clients - 1) * steps * step * number("variance", variance, at_least=0)


@explain_arguments(num_clients=SEVERAL)
def participation_sum(*, num_clients: int, cohort_size: int, local_steps: int, variance: float) -> float:
    """Γ = ν² [½JI²(JI−1) − JI(I²−1)/6 − (J−1)JI²((2J−1)I/6 − ½)/(C−1)] (Lemma 4, eq. 20, as printed).

    Γ = Σ_{c≤J} Σ_{i<I} E‖I Σ_{k<c} (x_ψk − x̄) + i (x_ψc − x̄)‖².

    >>> participation_sum(num_clients=5, cohort_size=3, local_steps=4, variance=1)
    166.0
    """
    clients, size, steps, spread = sizes(num_clients, cohort_size, local_steps, variance)
    free = size * steps**2 * (size * steps - 1) / 2 - size * steps * (steps**2 - 1) / 6
    drawn = (size - 1) * size * steps**2 * ((2 * size - 1) * steps / 6 - 1 / 2) / (clients - 1)
    return spread * (free - drawn)


@explain_arguments(cohort_size="J ≥ 1, the clients drawn.")
def participation_sum_bound(*, cohort_size: int, local_steps: int, variance: float) -> float:
    """½ J² I³ ν² ≥ Γ (Lemma 4, eq. 17, as printed).

    >>> participation_sum_bound(cohort_size=3, local_steps=4, variance=1)
    288.0
    """
    size, steps = count("cohort_size", cohort_size, at_least=1), count("local_steps", local_steps, at_least=1)
    return size**2 * steps**3 / 2 * number("variance", variance, at_least=0)


@explain_arguments(num_clients=SEVERAL)
def appendix_terms(*, num_clients: int, cohort_size: int, local_steps: int) -> NDArray[np.float64]:
    """The four terms of the appendix' second line, corrected, for ν² = 1; their sum is Γ.

    C I³/(C−1)·(J−1)J/2,  −I³/(C−1)·(J−1)J(2J−1)/6,  J (I−1)I(2I−1)/6,  −2I/(C−1)·(J−1)J/2·(I−1)I/2.

    >>> appendix_terms(num_clients=5, cohort_size=3, local_steps=4)
    array([240., -80.,  42., -36.])
    """
    clients, size, steps, _ = sizes(num_clients, cohort_size, local_steps, 1.0)
    pairs, squares = (size - 1) * size / 2, (size - 1) * size * (2 * size - 1) / 6
    inner, inner_squares = (steps - 1) * steps / 2, (steps - 1) * steps * (2 * steps - 1) / 6
    return np.array(
        [
            clients * steps**3 * pairs / (clients - 1),
            -(steps**3) * squares / (clients - 1),
            size * inner_squares,
            -2 * steps * pairs * inner / (clients - 1),
        ]
    )


@explain_arguments(num_clients=SEVERAL, cohort_size="J, 2 ≤ J ≤ C, the clients drawn.")
def appendix_line_two_as_printed(*, num_clients: int, cohort_size: int, local_steps: int) -> float:
    """The appendix' second line as printed: its second and fourth term divide by J−1, not C−1. For ν² = 1.

    >>> appendix_line_two_as_printed(num_clients=5, cohort_size=3, local_steps=2)
    7.0
    """
    count("cohort_size", cohort_size, at_least=2, advice="The printed line divides by cohort_size - 1.")
    terms = appendix_terms(num_clients=num_clients, cohort_size=cohort_size, local_steps=local_steps)
    swap = (num_clients - 1) / (cohort_size - 1)
    return float(terms @ [1, swap, 1, swap])


@explain_arguments(num_clients=SEVERAL)
def appendix_line_three_as_printed(*, num_clients: int, cohort_size: int, local_steps: int) -> float:
    """The appendix' third line as printed: "C (I−1)I(2I−1)/6" instead of J. For ν² = 1.

    >>> appendix_line_three_as_printed(num_clients=5, cohort_size=3, local_steps=2)
    22.0
    """
    terms = appendix_terms(num_clients=num_clients, cohort_size=cohort_size, local_steps=local_steps)
    return float(terms @ [1, 1, num_clients / cohort_size, 1])


def sizes(num_clients: int, cohort_size: int, local_steps: int, variance: float) -> tuple[int, int, int, float]:
    """C ≥ 2, 1 ≤ J ≤ C, I ≥ 1 and ν² ≥ 0."""
    count("num_clients", num_clients, at_least=2, advice="With one client nothing is drawn.")
    clients, size = cohort(num_clients, cohort_size)
    return clients, size, count("local_steps", local_steps, at_least=1), number("variance", variance, at_least=0)
