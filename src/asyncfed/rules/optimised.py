"""Optimised: a server optimiser takes the step that a rule describes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from asyncfed.core.record import Config
from asyncfed.core.types import Merge
from asyncfed.registry import register
from asyncfed.rules.adam import Adam
from asyncfed.rules.mean import Mean
from asyncfed.rules.optimiser import Optimiser
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule, is_sum_only
from asyncfed.rules.wrapping import WrappingRule, with_prefix, without_prefix

OWN = "optimiser/"


@register("rule")
class Optimised(WrappingRule, Config, tag_field="kind", tag="optimised"):
    """What the wrapped rule would change is the mean change D; an optimiser decides how the model moves along it.

        D = rule(x, arrivals) - x;    x <- x + optimiser(D)

    With FedAvg this is FedAdam, FedYogi, FedAdagrad or FedAvgM; with FedBuff, FedAsync or AFL's deltas their
    asynchronous relatives, where D is what that strategy's merge would have changed.

    Args:
        rule: how arrivals become a change; by default the weighted sum of the merge.
        optimiser: `Adam`, `Yogi`, `Adagrad` or `Momentum`, or one's own.

    >>> from asyncfed.strategies import FedAvg
    >>> FedAvg(rule=Optimised(optimiser=Adam(lr=0.01))).rule.optimiser.b2
    0.99

    Reddi et al., "Adaptive Federated Optimization", ICLR 2021.
    """

    rule: ServerRule = Mean()
    optimiser: Optimiser = Adam()

    any_population: ClassVar[bool] = True

    @property
    def sum_only(self) -> bool:
        """Whether the wrapped rule is: the optimiser sees nothing but the change that it makes."""
        return is_sum_only(self.rule)

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """The optimiser's memory, and the wrapped rule's."""
        return {**with_prefix(self.optimiser.init(params), OWN), **super().init(params, num_clients)}

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The wrapped rule's change, then the optimiser's step along it."""
        merged, wrapped, info = self.rule.step(without_prefix(memory), params, arrivals, merge, key)
        step, own = self.optimiser.update(without_prefix(memory, OWN), merged - params)
        return params + step, {**with_prefix(own, OWN), **with_prefix(wrapped)}, info
