"""What rules share that change what arrives, and leave the merge to the rule they wrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from asyncfed.core.types import Merge
from asyncfed.rules.protocol import Arrays, Arrival
from asyncfed.rules.wrapping import PREFIX, WrappingRule, with_prefix, without_prefix


class PreparingRule(WrappingRule):
    """A rule around `rule`, which makes the merge of what `prepare` makes of the arrivals."""

    __slots__ = ()

    if TYPE_CHECKING:  # what each of them has

        def prepare(self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
            """The arrivals as the wrapped rule is to see them; `memory`, its own part, may be changed in place."""

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The wrapped rule's step with the prepared arrivals."""
        own = {name: array for name, array in memory.items() if not name.startswith(PREFIX)}
        prepared = self.prepare(own, params, arrivals)
        params, wrapped, info = self.rule.step(without_prefix(memory), params, prepared, merge, key)
        return params, {**own, **with_prefix(wrapped)}, info
