"""Mean: the weighted sum that a merge describes, as a rule. What strategies do without a rule."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import ClassVar

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, replace
from asyncfed.core.types import Merge
from asyncfed.registry import register
from asyncfed.rules.protocol import Arrays, Arrival, Rule
from asyncfed.rules.vectors import Vectors


@register("rule")
class Mean(Rule, Config, tag_field="kind", tag="mean"):
    """The weighted sum of a merge, to the last bit what strategies do without a rule.

        x <- keep * x + sum_i weight_i * payload_i

    Summed in the order of the tickets. It is what other rules are wrapped around.

    >>> Mean().theorem
    'as without a rule'
    """

    any_population: ClassVar[bool] = True

    @property
    def theorem(self) -> str:
        """What covers the strategy without a rule covers it with this one."""
        return "as without a rule"

    @property
    def change_bound(self) -> float:
        """Any length."""
        return inf

    @property
    def sum_only(self) -> bool:
        """Yes: it is that sum."""
        return True

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The weighted sum."""
        if merge.combiner is not None:
            raise ConfigError(
                f'strategy.rule cannot be used: the strategy merges by "{merge.combiner.name}", a rule of its own. '
                'Leave `rule` out, or choose another way to aggregate (AFL: aggregate = "delta_mean").'
            )
        vectors = Vectors(params)
        for place, arrival in enumerate(arrivals):
            vectors.client_of[place] = arrival.client
            vectors.starts[place], vectors.trained[place] = arrival.start, arrival.model
        weights = tuple([arrival.weight for arrival in arrivals])
        vectors.merge(replace(merge, tickets=tuple(range(len(arrivals))), weights=weights))
        return vectors.params, memory, {}
