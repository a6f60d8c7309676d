"""The respects in which clients may differ, and what a split claims about them."""

from __future__ import annotations

from typing import Literal, TypeAlias

Respect: TypeAlias = Literal["sizes", "target", "features", "concept"]
RESPECTS: tuple[Respect, ...] = ("sizes", "target", "features", "concept")

# An empty set asks for IID clients. None asks for nothing: the clients are as they come.
Asks: TypeAlias = frozenset[Respect] | None
