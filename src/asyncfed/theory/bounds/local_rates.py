"""The learning rates of one client's local steps: one rate for all, or one for each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.arguments import count, in_range


class LocalRates(NamedTuple):
    """`total` = Σλ_i and `equal_steps` = (Σλ_i)²/Σλ_i², which is I when all λ_i are equal, and less otherwise."""

    total: float
    equal_steps: float


def each_rate(learning_rate: ArrayLike, local_steps: int) -> NDArray[np.float64]:
    """λ_0 … λ_{I−1} as an array, from one number or from the I numbers.

    >>> each_rate(0.1, 3)
    array([0.1, 0.1, 0.1])
    """
    steps = count("local_steps", local_steps, at_least=1)
    rates = np.asarray(in_range("learning_rate", learning_rate, above=0))
    if rates.ndim and rates.shape != (steps,):
        raise ConfigError(
            f"learning_rate has shape {rates.shape}, but there are {steps} local_steps. "
            "Give one rate, or one for each local step."
        )
    return np.broadcast_to(rates, steps)


def local_rates(learning_rate: ArrayLike, local_steps: int) -> LocalRates:
    """What the bounds need of the local rates. `learning_rate` > 0: one number, or I of them; `local_steps` I ≥ 1.

    >>> local_rates(0.1, 4)
    LocalRates(total=0.4, equal_steps=4.0)
    >>> local_rates([0.75, 0.25], 2)
    LocalRates(total=1.0, equal_steps=1.6)
    """
    if np.ndim(learning_rate) == 0:
        steps = count("local_steps", local_steps, at_least=1)
        return LocalRates(float(in_range("learning_rate", learning_rate, above=0)) * steps, float(steps))
    rates = each_rate(learning_rate, local_steps)
    total = float(rates.sum())
    return LocalRates(total, total**2 / float(rates @ rates))
