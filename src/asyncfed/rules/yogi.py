"""Yogi: the optimiser of FedYogi."""

from __future__ import annotations

import numpy as np

from asyncfed.registry import register
from asyncfed.rules.optimiser import Adaptive, check_fraction


@register("optimiser")
class Yogi(Adaptive, tag_field="kind", tag="yogi"):
    """FedYogi's step along the mean change D of a merge: Adam with a second moment that moves by at most (1 - b2) D^2.

        m <- b1 m + (1 - b1) D;    v <- v - (1 - b2) D^2 sign(v - D^2);    x <- x + lr m / (sqrt(v) + eps)

    Args:
        lr: the server's step, above 0. The paper tunes it from 1e-3 to 10.
        b1: how much of the first moment is kept, from 0 to below 1.
        b2: how slowly the second moment moves, from 0 to below 1.
        eps: how small sqrt(v) may count, above 0.
        v0: the second moment before the first merge, 0 or more; left out, eps**2.

    >>> Yogi(b2=1.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: optimiser.b2 is 1.0; it must be at least 0 and below 1.

    Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 2.
    """

    b2: float = 0.99

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("b2", self.b2)

    def second_moment(self, v: np.ndarray, square: np.ndarray) -> np.ndarray:
        """Towards the squares, by a part of them."""
        moved: np.ndarray = v - (1.0 - self.b2) * square * np.sign(v - square)
        return moved
