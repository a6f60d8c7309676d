"""q-fair weights: a client counts the more, the larger its loss.

Paper: Li, Sanjabi, Beirami & Smith, "Fair Resource Allocation in Federated Learning", ICLR 2020 (q-FFL, Algorithm 2,
q-FedAvg). With F_k the loss of client k at the model w that it started from, and D_k its change:

    Delta_k = -L F_k^q D_k;     h_k = q F_k^(q-1) |L D_k|^2 + L F_k^q;     x = x - sum_k Delta_k / sum_k h_k

which minimises sum_k F_k^(q+1) / (q+1), L being the smoothness of the losses, one over the rate of the local steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Work
from asyncfed.registry import register
from asyncfed.rules.mean import Mean
from asyncfed.rules.preparing import PreparingRule
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule
from asyncfed.rules.work_checks import refuse_settings

LEAST_LOSS = 1e-10
"""Losses count as at least this, as in the authors' code, so that they have powers below 0."""


@register("rule")
class QFair(PreparingRule, Config, tag_field="kind", tag="qfair"):
    """q-fair weights: each change D_k is scaled by what its client's loss F_k says.

        x = x + P sum_k p_k u_k D_k / sum_k p_k u_k (1 + q L |D_k|^2 / F_k),     u_k = F_k^q,  P = sum_k p_k

    p_k being the merge's weights: q-FedAvg where all are 1/K, with the discounts of a buffer where it has them. With
    q = 0 it is the merge itself, to the last bit. F_k is `start_loss`, the penalty included.

    Args:
        q: how much large losses count, 0 or more; the paper's experiments use 0.001 to 10.
        smoothness: the paper's L, above 0; None for one over the local learning rate, as the authors do.
        rule: how the scaled changes become the next model.

    >>> QFair().check(Work())
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: the rule QFair weighs clients by their start_loss, which work does not ask for. \
Set strategy.work.start_loss to true, or use another rule.

    Li et al., "Fair Resource Allocation in Federated Learning", ICLR 2020.
    """

    q: float = 1.0
    smoothness: float | None = None
    rule: ServerRule = Mean()

    def __post_init__(self) -> None:
        if not 0.0 <= self.q < inf:
            raise ConfigError(f"rule.q is {self.q}; it must be zero or a positive number.")
        if self.smoothness is not None and not 0.0 < self.smoothness < inf:
            raise ConfigError(f"rule.smoothness is {self.smoothness}; it must be a positive number, or left out.")

    def check(self, work: Work) -> None:
        """Clients have to measure their loss, and to start from the server's model."""
        refuse_settings("QFair", work, start="the losses it weighs by are those of the server's model")
        if not work.start_loss:
            raise ConfigError(
                "the rule QFair weighs clients by their start_loss, which work does not ask for. "
                "Set strategy.work.start_loss to true, or use another rule."
            )
        self.rule.check(work)

    def prepare(self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
        """Each change scaled."""
        scales = self.scales(arrivals)
        if all(scale == 1.0 for scale in scales):
            return arrivals
        return [
            a._replace(model=(a.start + scale * a.change).astype(params.dtype))
            for a, scale in zip(arrivals, scales, strict=True)
        ]

    def scales(self, arrivals: Sequence[Arrival]) -> list[float]:
        """What each change is multiplied by before the merge weighs it."""
        total = sum(a.weight for a in arrivals)
        if self.q == 0.0 or total == 0.0:
            return [1.0] * len(arrivals)
        losses = [max((a.metrics or {})["start_loss"], 0.0) + LEAST_LOSS for a in arrivals]
        largest = max(losses)
        powers = [(loss / largest) ** self.q for loss in losses]  # the largest power is 1, whatever q
        steps = 0.0
        for arrival, loss, power in zip(arrivals, losses, powers, strict=True):
            smoothness = 1.0 / arrival.work.learning_rate if self.smoothness is None else self.smoothness
            change = arrival.change.astype(np.float64)
            steps += arrival.weight * power * (1.0 + self.q * smoothness * float(change.dot(change)) / loss)
        return [total * power / steps for power in powers]
