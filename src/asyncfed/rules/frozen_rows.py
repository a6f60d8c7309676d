"""FrozenRows: the rows of an array that nobody has put together, because each is large and lies somewhere already."""

from __future__ import annotations

import numpy as np


class FrozenRows(list[np.ndarray]):
    """One-dimensional arrays of the same length, at least one, none of which will ever be changed.

    Whoever stores them may store each once, and need not store one again that it has stored before. As one array they
    would have the shape `shape`. The store takes any list for one.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Of all rows as one array."""
        return (len(self), *self[0].shape)

    @property
    def nbytes(self) -> int:
        """Of the distinct rows: the same array may be several of them."""
        return sum({id(row): int(row.nbytes) for row in self}.values())

    def tolist(self) -> list[list[float]]:
        """The numbers."""
        return [row.tolist() for row in self]
