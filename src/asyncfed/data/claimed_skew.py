"""The aspects in which clients may differ, and which of them a split claims."""

from __future__ import annotations

from typing import Literal, TypeAlias

SkewAspect: TypeAlias = Literal["sizes", "target", "features", "concept"]
"""How many rows clients have, which targets, which features, and what features say about the target."""

SKEW_ASPECTS: tuple[SkewAspect, ...] = ("sizes", "target", "features", "concept")

ClaimedSkew: TypeAlias = frozenset[SkewAspect] | None
"""An empty set claims IID clients. None claims nothing: the clients are as the data have them."""
