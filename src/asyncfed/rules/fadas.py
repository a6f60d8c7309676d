"""Fadas: AMSGrad on the mean change of a buffer, with a smaller step when the buffer holds something stale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.core.types import Merge
from asyncfed.registry import register
from asyncfed.rules.amsgrad import Amsgrad
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule, is_sum_only
from asyncfed.rules.wrapping import WrappingRule, with_prefix, without_prefix

OWN = "amsgrad/"


@register("rule")
class Fadas(WrappingRule, Config, tag_field="kind", tag="fadas"):
    """FADAS: AMSGrad along the change D of a merge, its step shrunk by the largest staleness tau_max in it.

        m <- b1 m + (1 - b1) D;    v <- b2 v + (1 - b2) D^2;    u <- max(u, v);    x <- x + lr_t m / (sqrt(u) + eps)
        lr_t = lr   if tau_max <= staleness_threshold,   else   lr / tau_max ("code"),   min(lr, 1 / tau_max) ("paper")

    "code" also corrects both moments for how they began: m / (1 - b1^t) and u / (1 - b2^t). In the paper's reading the
    step is only shrunk if lr tau_max > 1, which at the usual lr it never is. Both moments and u begin at 0. The merge's
    D is what the wrapped rule would change: with FedBuff without a discount, the mean of the buffer. tau_max and lr_t
    are in the journal.

    Args:
        lr: the server's step, above 0; it is a length per parameter, and has to be tuned.
        b1: how much of the first moment is kept, from 0 to below 1.
        b2: how much of the second moment is kept, from 0 to below 1.
        eps: how small sqrt(u) may count, above 0.
        staleness_threshold: tau_c, up to which nothing is shrunk, 0 or more; left out, nothing ever is.
        reading: "code", the authors' implementation, or "paper".
        rule: how arrivals become a change; by default the weighted sum of the merge.

    >>> [Fadas(lr=0.5, reading=r, staleness_threshold=1).step_size(4) for r in ("code", "paper")]
    [0.125, 0.25]

    Wang, Wang, Lu & Chen, "FADAS: Towards Federated Adaptive Asynchronous Optimization", ICML 2024.
    """

    lr: float = 0.1
    b1: float = 0.9
    b2: float = 0.99
    eps: float = 1e-8
    staleness_threshold: int | UnsetType = UNSET
    reading: Literal["code", "paper"] = "code"
    rule: ServerRule = Mean()

    def __post_init__(self) -> None:
        _ = self.optimiser  # checks the settings that it is made of
        if self.staleness_threshold is not UNSET and self.staleness_threshold < 0:
            raise ConfigError(
                f"rule.staleness_threshold is {self.staleness_threshold}; it must be 0 or more versions, or left out "
                "for a step that never shrinks."
            )

    @property
    def sum_only(self) -> bool:
        """Whether the wrapped rule is: of single updates it uses the staleness alone."""
        return is_sum_only(self.rule)

    @property
    def optimiser(self) -> Amsgrad:
        """What takes the step, before it is shrunk."""
        corrected = self.reading == "code"
        return Amsgrad(lr=self.lr, b1=self.b1, b2=self.b2, eps=self.eps, v0=0.0, bias_correction=corrected)

    def step_size(self, largest_staleness: int) -> float:
        """lr_t for a merge whose stalest update is so many versions old."""
        if self.staleness_threshold is UNSET or largest_staleness <= self.staleness_threshold:
            return self.lr
        return self.lr / largest_staleness if self.reading == "code" else min(self.lr, 1.0 / largest_staleness)

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """The moments, and the wrapped rule's memory."""
        return {**with_prefix(self.optimiser.init(params), OWN), **super().init(params, num_clients)}

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The wrapped rule's change, then AMSGrad's step along it, shrunk."""
        merged, wrapped, info = self.rule.step(without_prefix(memory), params, arrivals, merge, key)
        step, own = self.optimiser.update(without_prefix(memory, OWN), merged - params)
        largest = max(arrival.staleness for arrival in arrivals)
        lr = self.step_size(largest)
        moved = (params + (lr / self.lr) * step).astype(params.dtype)
        after = {**with_prefix(own, OWN), **with_prefix(wrapped)}
        return moved, after, {**info, "largest_staleness": float(largest), "step_size": lr}
