"""When a constant delay makes gradient descent oscillate without end (Levin and May 1976; exact)."""

from __future__ import annotations

import numpy as np

from asyncfed.theory.bounds.argument_meanings import explain_arguments
from asyncfed.theory.bounds.arguments import count, number


def delay_stability_limit(staleness: int) -> float:
    """x_{t+1} = x_t − a x_{t−τ} tends to 0 if and only if 0 < a < 2 sin(π/(2(2τ+1))). τ ≥ 0.

    Args:
        staleness: τ ≥ 0, whole, the same for all updates.

    >>> f"{delay_stability_limit(8):.6g} {delay_stability_limit(9):.6g}"
    '0.184537 0.165159'

    Returns:
        The value of the formula.
    """
    return 2 * float(np.sin(np.pi / (2 * (2 * count("staleness", staleness) + 1))))


@explain_arguments()
def is_stable(*, effective_step: float, curvature: float, staleness: int) -> bool:
    """Does x_{t+1} = x_t − γ h x_{t−τ} tend to 0? τ is the staleness of every step.

    A quadratic in more dimensions is stable if it is for its largest curvature, L.

    >>> [is_stable(effective_step=1 / 6, curvature=1, staleness=tau) for tau in (8, 9)]
    [True, False]
    """
    product = number("effective_step", effective_step, above=0) * number("curvature", curvature, above=0)
    return product < delay_stability_limit(staleness)
