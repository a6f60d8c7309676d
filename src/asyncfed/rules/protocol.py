"""What a vector rule is: a small value with a memory that goes in and comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

Arrays: TypeAlias = dict[str, np.ndarray]


class Combiner(Protocol):
    """`apply` makes the new params of the payloads, in ticket order, what each counts, and whose they are.

    It owns the memory it is given and may change it in place; it never changes `params` or a payload. `dump` and `load`
    turn the memory into arrays for a checkpoint and back.
    """

    @property
    def name(self) -> str: ...
    def init(self, params: np.ndarray) -> Any: ...
    def apply(
        self,
        memory: Any,
        params: np.ndarray,
        payloads: Sequence[np.ndarray],
        weights: Sequence[float],
        clients: Sequence[int],
        settings: Sequence[tuple[str, Any]],
    ) -> tuple[np.ndarray, Any, dict[str, float]]: ...
    def dump(self, memory: Any) -> Arrays: ...
    def load(self, arrays: Arrays) -> Any: ...
