"""AMSGrad: Adam whose second moment never falls."""

from __future__ import annotations

import numpy as np

from asyncfed.registry import register
from asyncfed.rules.optimiser import Adaptive, check_fraction
from asyncfed.rules.protocol import Arrays


@register("optimiser")
class Amsgrad(Adaptive, tag_field="kind", tag="amsgrad"):
    """AMSGrad's step along the mean change D of a merge: Adam that divides by the largest second moment so far.

        m <- b1 m + (1 - b1) D;    v <- b2 v + (1 - b2) D^2;    u <- max(u, v);    x <- x + lr m / (sqrt(u) + eps)

    With `bias_correction`, m / (1 - b1^t) and u / (1 - b2^t) take the place of m and u in the t-th step; the maximum is
    over the v that are not corrected. That belongs with `v0 = 0`.

    Args:
        lr: the server's step, above 0.
        b1: how much of the first moment is kept, from 0 to below 1.
        b2: how much of the second moment is kept, from 0 to below 1.
        eps: how small sqrt(u) may count, above 0.
        v0: v and u before the first merge, 0 or more; left out, eps**2.
        bias_correction: whether to correct the moments for how they began.

    >>> sorted(Amsgrad().init(np.zeros(1)))
    ['m', 'u', 'v']

    Reddi, Kale & Kumar, "On the Convergence of Adam and Beyond", ICLR 2018; as a server's optimiser: Wang, Lin & Chen,
    "Communication-Efficient Adaptive Federated Learning", ICML 2022 (FedAMS).
    """

    b2: float = 0.99
    bias_correction: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("b2", self.b2)

    def init(self, params: np.ndarray) -> Arrays:
        """The moments, and the largest second one; with bias correction, the number of steps too."""
        count = {"count": np.zeros((), np.int64)} if self.bias_correction else {}
        moments = super().init(params)
        return {**moments, "u": moments["v"].copy(), **count}

    def second_moment(self, v: np.ndarray, square: np.ndarray) -> np.ndarray:
        """A moving average of the squares."""
        moved: np.ndarray = self.b2 * v + (1.0 - self.b2) * square
        return moved

    def update(self, memory: Arrays, change: np.ndarray) -> tuple[np.ndarray, Arrays]:
        """The step, after the moments have moved."""
        m, v = self.moments(memory, change)
        u = np.maximum(memory["u"], v)
        after = {"m": m, "v": v, "u": u}
        if not self.bias_correction:
            return self.step(m, u), after
        count = int(memory["count"]) + 1
        step = self.step(m / (1.0 - self.b1**count), u / (1.0 - self.b2**count))
        return step, {**after, "count": np.array(count, np.int64)}
