"""The aspects in which clients may differ, and which of them a split claims."""

from __future__ import annotations

from typing import Literal, TypeAlias

SkewAspect: TypeAlias = Literal["sizes", "target", "features", "concept"]
SKEW_ASPECTS: tuple[SkewAspect, ...] = ("sizes", "target", "features", "concept")

# An empty set claims IID clients. None claims nothing: the clients are as the data have them.
ClaimedSkew: TypeAlias = frozenset[SkewAspect] | None
