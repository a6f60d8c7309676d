"""Adagrad: the optimiser of FedAdagrad."""

from __future__ import annotations

import numpy as np

from asyncfed.registry import register
from asyncfed.rules.optimiser import Adaptive


@register("optimiser")
class Adagrad(Adaptive, tag_field="kind", tag="adagrad"):
    """FedAdagrad's step along the mean change D of a merge: ever shorter where changes have been large.

        m <- b1 m + (1 - b1) D;    v <- v + D^2;    x <- x + lr m / (sqrt(v) + eps)

    Args:
        lr: the server's step, above 0. The paper tunes it from 1e-3 to 10.
        b1: how much of the first moment is kept, from 0 to below 1; 0, as published, is no momentum.
        eps: how small sqrt(v) may count, above 0.
        v0: the second moment before the first merge, 0 or more; left out, eps**2.

    >>> Adagrad().b1
    0.0

    Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 2.
    """

    b1: float = 0.0

    def second_moment(self, v: np.ndarray, square: np.ndarray) -> np.ndarray:
        """The sum of all squares."""
        moved: np.ndarray = v + square
        return moved
