"""What a vector rule is: a small value with a memory that goes in and comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

Arrays: TypeAlias = dict[str, np.ndarray]


class Combiner(Protocol):
    """How payloads become the next model, for rules that are more than a weighted sum; a merge names it."""

    @property
    def name(self) -> str:
        """What merges call it."""
        ...

    def init(self, params: np.ndarray) -> Any:
        """The memory at the first merge; `params` is the model then."""
        ...

    def apply(
        self,
        memory: Any,
        params: np.ndarray,
        payloads: Sequence[np.ndarray],
        weights: Sequence[float],
        clients: Sequence[int],
        settings: Sequence[tuple[str, Any]],
    ) -> tuple[np.ndarray, Any, dict[str, float]]:
        """The new params, the memory, and findings about the merge.

        The memory may be changed in place; `params` and payloads may not.

        Args:
            memory: what `init` or the last `apply` gave.
            params: the model before the merge.
            payloads: models or deltas, in ticket order.
            weights: what each of them counts.
            clients: whose they are.
            settings: the merge's own, as (name, value) pairs.
        """
        ...

    def dump(self, memory: Any) -> Arrays:
        """The memory as named arrays, for a checkpoint."""
        ...

    def load(self, arrays: Arrays) -> Any:
        """The inverse of `dump`."""
        ...
