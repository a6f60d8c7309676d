"""Clipped: a rule that sees no change longer than a given length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Merge
from asyncfed.registry import register
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule
from asyncfed.rules.wrapping import WrappingRule, with_prefix, without_prefix
from asyncfed.uplinks.norms import clip_to_norm


@register("rule")
class Clipped(WrappingRule, Config, tag_field="kind", tag="clipped"):
    """The server shortens each arrival's change to the L2 norm C before the wrapped rule sees it.

        model_i <- start_i + (model_i - start_i) * min(1, C / |model_i - start_i|)

    A merge of models is clipped the same way: by how far each is from the model that its client started from. If some
    were, the journal says how many, as `clipped`. What is within C stays as it is, to the last bit.

    Args:
        rule: what sees the clipped arrivals; by default the weighted sum of the merge.
        norm: C, above 0.

    >>> Clipped(norm=-1.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: rule.norm is -1.0; it must be a positive number.
    """

    rule: ServerRule = Mean()
    norm: float = 1.0

    any_population: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.norm > 0:
            raise ConfigError(f"rule.norm is {self.norm}; it must be a positive number.")

    @property
    def change_bound(self) -> float | None:
        """The norm, if the wrapped rule makes a weighted sum."""
        bound: float | None = getattr(self.rule, "change_bound", None)
        return None if bound is None else min(self.norm, bound)

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The wrapped rule's, from clipped arrivals."""
        within = [self.clip(arrival) for arrival in arrivals]
        merged, wrapped, info = self.rule.step(without_prefix(memory), params, within, merge, key)
        clipped = sum(one is not other for one, other in zip(within, arrivals, strict=True))
        return merged, with_prefix(wrapped), {**info, "clipped": clipped} if clipped else info

    def clip(self, arrival: Arrival) -> Arrival:
        """The arrival with a change of the norm at most; itself, if it has one already."""
        change = arrival.change
        clipped = clip_to_norm(change, self.norm)
        return arrival if clipped is change else arrival._replace(model=arrival.start + clipped)
