"""Adam: the optimiser of FedAdam."""

from __future__ import annotations

import numpy as np

from asyncfed.registry import register
from asyncfed.rules.optimiser import Adaptive, check_fraction
from asyncfed.rules.protocol import Arrays


@register("optimiser")
class Adam(Adaptive, tag_field="kind", tag="adam"):
    """FedAdam's step along the mean change D of a merge.

        m <- b1 m + (1 - b1) D;    v <- b2 v + (1 - b2) D^2;    x <- x + lr m / (sqrt(v) + eps)

    As published there is no bias correction. Flower's FedAdam and Kingma & Ba's Adam correct it: with
    `bias_correction`, m / (1 - b1^t) and v / (1 - b2^t) take the place of m and v in the t-th step. That is a variant,
    and belongs with `v0 = 0`.

    Args:
        lr: the server's step, above 0. The paper tunes it from 1e-3 to 10.
        b1: how much of the first moment is kept, from 0 to below 1.
        b2: how much of the second moment is kept, from 0 to below 1.
        eps: how small sqrt(v) may count, above 0.
        v0: the second moment before the first merge, 0 or more; left out, eps**2.
        bias_correction: whether to correct the moments for how they began.

    >>> Adam().v0, Adam().init(np.zeros(1))["v"].tolist()
    (UNSET, [1e-06])

    Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 2.
    """

    b2: float = 0.99
    bias_correction: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("b2", self.b2)

    def init(self, params: np.ndarray) -> Arrays:
        """Both moments; with bias correction, the number of steps too."""
        count = {"count": np.zeros((), np.int64)} if self.bias_correction else {}
        return {**super().init(params), **count}

    def second_moment(self, v: np.ndarray, square: np.ndarray) -> np.ndarray:
        """A moving average of the squares."""
        moved: np.ndarray = self.b2 * v + (1.0 - self.b2) * square
        return moved

    def update(self, memory: Arrays, change: np.ndarray) -> tuple[np.ndarray, Arrays]:
        """The step, after both moments have moved."""
        if not self.bias_correction:
            return super().update(memory, change)
        m, v = self.moments(memory, change)
        count = int(memory["count"]) + 1
        step = self.step(m / (1.0 - self.b1**count), v / (1.0 - self.b2**count))
        return step, {"m": m, "v": v, "count": np.array(count, np.int64)}
