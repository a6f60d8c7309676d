"""Tier models: a model for each tier of clients, and the server's model as their weighted mean. FedAT's server.

    a merge of tier m:  w_m = what the merge makes of its payloads;     x = sum_m weight_m w_m

All w_m are the first model until their tier is merged for the first time. Which tier a merge is of, and what each
counts, is told by the strategy with the merge.

State: M models. Bytes beyond the model: none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, replace
from asyncfed.core.types import Merge
from asyncfed.registry import register
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrays, Arrival, Rule


@register("rule")
class TierModels(Rule, Config, tag_field="kind", tag="tier_models"):
    """x = sum_m weight_m w_m, one w_m for each tier; a merge replaces one of them.

    A merge's settings are `tier`, from 0 on, and `weights`, one for each tier in use; without them all merges are of
    tier 0, and all tiers count the same. It is the rule of the strategy `fedat`, which says both.

    Args:
        tiers: M, 1 or more.

    >>> TierModels(tiers=0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: rule.tiers is 0; there must be at least 1 tier.

    Chai et al., "FedAT: A High-Performance and Communication-Efficient Federated Learning System with Asynchronous
    Tiers", SC 2021.
    """

    tiers: int = 5

    def __post_init__(self) -> None:
        if self.tiers < 1:
            raise ConfigError(f"rule.tiers is {self.tiers}; there must be at least 1 tier.")

    @property
    def sum_only(self) -> bool:
        """Yes: a tier's model is made of the sum over its cohort."""
        return True

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """All tiers have the first model."""
        return {"models": np.repeat(params[None, :], self.tiers, axis=0)}

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """Replace the tier's model, and mix all."""
        tier, weights = 0, (1.0 / self.tiers,) * self.tiers
        if merge.combiner is not None:
            (_, tier), (_, weights) = merge.combiner.settings
        models = memory["models"].copy()
        models[tier], _, _ = Mean().step({}, models[tier], arrivals, replace(merge, combiner=None), key)
        mixed = np.zeros(params.size)
        for weight, model in zip(weights, models, strict=False):  # in one order, so that sums have the same bits
            mixed += weight * model
        return mixed.astype(params.dtype), {"models": models}, {}
