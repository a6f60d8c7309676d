"""The plain hinge loss is not smooth and not strongly convex: Theorem 1 says nothing about it, but this bound does."""

from __future__ import annotations

from numpy.typing import ArrayLike

from asyncfed.theory.bounds.argument_meanings import explain_arguments
from asyncfed.theory.bounds.arguments import Curve, as_curve, count, number, whole


@explain_arguments(effective_step="γ = λ I > 0, for received deltas that are averaged.")
def hinge_bound(
    *,
    start_distance_squared: float,
    effective_step: float,
    last_index: ArrayLike,
    largest_subgradient: float,
    staleness: int,
    local_steps: int,
) -> Curve:
    """E F(mean of x_0 … x_T) − F* ≤ ‖x_0−x*‖²/(2γ(T+1)) + γ G² (½ + 2(τ + (I−1)/I)). Not in the paper.

    Convex losses with subgradients of norm ≤ G everywhere (hinge without L2: G = max‖z_i‖); γ = λ I with the received
    deltas averaged; clients uniform, independent of the model; x* any minimiser. Plain mean, all weights equal.
    From ⟨g, x_t − x*⟩ ≥ F_c(x_t) − F_c(x*) − 2G‖x_t − y‖.

    >>> value = hinge_bound(start_distance_squared=4, effective_step=.01, last_index=999, largest_subgradient=3,
    ...                     staleness=2, local_steps=5)
    >>> f"{value:.6g}"
    '0.749'
    """
    start = number("start_distance_squared", start_distance_squared, at_least=0)
    step, steps = number("effective_step", effective_step, above=0), count("local_steps", local_steps, at_least=1)
    late = count("staleness", staleness) + (steps - 1) / steps
    noise = step * number("largest_subgradient", largest_subgradient, at_least=0) ** 2 * (0.5 + 2 * late)
    return as_curve(start / (2 * step * (whole("last_index", last_index) + 1)) + noise)


subgradient_bound = hinge_bound
"""The same under the name of its method: it holds for any convex loss with bounded subgradients."""
