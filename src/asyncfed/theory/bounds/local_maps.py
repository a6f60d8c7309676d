"""What I local gradient steps of one client do to a distance: the constants of the path-wise bounds P and M."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from asyncfed.theory.bounds.argument_meanings import explain_arguments
from asyncfed.theory.bounds.arguments import Curve, curvature, in_range, number
from asyncfed.theory.bounds.local_rates import each_rate


class LocalMap(NamedTuple):
    """Of the map G_c of I local steps: `shrink` q of distances; `gain` s = 1 − q; `stretch` K of G_c − id."""

    shrink: float
    gain: float
    stretch: float


@explain_arguments()
def largest_path_learning_rate(*, smoothness: float, strong_convexity: float) -> float:
    """2/(L + μ): up to here one gradient step shrinks distances by 1 − λμ.

    >>> largest_path_learning_rate(smoothness=3.5, strong_convexity=0.5)
    0.5
    """
    return 2 / sum(curvature(smoothness, strong_convexity))


@explain_arguments(
    smoothness="L > 0 of every loss stepped on: each client's, or each mini-batch's.",
    strong_convexity="μ, 0 < μ ≤ L, of every loss stepped on.",
    learning_rate="λ_i, 0 < λ_i ≤ 2/(L + μ): one number, or I of them.",
)
def local_map(*, smoothness: float, strong_convexity: float, learning_rate: ArrayLike, local_steps: int) -> LocalMap:
    """q = Π(1 − λ_i μ), s = 1 − q, K = min(L s/μ, 1 + q).

    >>> of_client = local_map(smoothness=4, strong_convexity=0.5, learning_rate=0.002, local_steps=5)
    >>> f"{of_client.gain:.6g} {of_client.stretch:.6g}"
    '0.00499001 0.0399201'
    """
    largest, smallest = curvature(smoothness, strong_convexity)
    limit = largest_path_learning_rate(smoothness=largest, strong_convexity=smallest)
    rates = each_rate(learning_rate, local_steps)
    in_range(
        "learning_rate",
        learning_rate,
        at_most=limit * (1 + 1e-12),
        advice="That is 2/(smoothness + strong_convexity); a larger step may lengthen distances.",
    )
    with np.errstate(divide="ignore"):
        log_shrink = float(np.log1p(-np.minimum(rates * smallest, 1.0)).sum())
    gain = -float(np.expm1(log_shrink))
    return LocalMap(1 - gain, gain, min(largest * gain / smallest, 2 - gain))


@explain_arguments(strong_convexity="μ > 0 of every client's loss.")
def fixed_point_gap(*, gain: ArrayLike, strong_convexity: float, largest_optimum_gradient: float) -> Curve:
    """An upper bound of b = max_c ‖x* − G_c(x*)‖, how far local training leaves the optimum: (s/μ) max_c ‖∇F_c(x*)‖.

    Running the local steps from x* measures b itself, which is smaller.

    >>> fixed_point_gap(gain=0.5, strong_convexity=0.5, largest_optimum_gradient=0.25)
    0.25
    """
    share = in_range("gain", gain, above=0, at_most=1) / number("strong_convexity", strong_convexity, above=0)
    return share * number("largest_optimum_gradient", largest_optimum_gradient, at_least=0)
