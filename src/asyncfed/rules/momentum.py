"""Momentum: the optimiser of FedAvgM."""

from __future__ import annotations

import numpy as np

from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.rules.optimiser import check_fraction, check_positive
from asyncfed.rules.protocol import Arrays


@register("optimiser")
class Momentum(Config, tag_field="kind", tag="momentum"):
    """The heavy ball at the server: a merge goes on along the changes of those before it.

        m <- b m + D;    x <- x + lr m

    Args:
        lr: the server's step, above 0. With b, a steady change moves the model by lr / (1 - b) times itself.
        b: how much of the last step is kept, from 0 (none) to below 1.

    >>> Momentum(lr=0.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: optimiser.lr is 0.0; it must be a positive number.

    Hsu, Qi & Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification",
    2019 (FedAvgM).
    """

    lr: float = 1.0
    b: float = 0.9

    def __post_init__(self) -> None:
        check_positive("lr", self.lr)
        check_fraction("b", self.b)

    def init(self, params: np.ndarray) -> Arrays:
        """m = 0."""
        return {"m": np.zeros_like(params)}

    def update(self, memory: Arrays, change: np.ndarray) -> tuple[np.ndarray, Arrays]:
        """The step."""
        m = self.b * memory["m"] + change
        return self.lr * m, {"m": m}
