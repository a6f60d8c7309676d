"""Columns that arrive in blocks of rows, kept compact: numbers as float64, texts as codes with a list of the texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.data.reading.text_columns import Texts


class NumberBlocks:
    """Numbers of one column, NaN where missing, copied into one array as they arrive.

    Args:
        expected: how many rows there will be, or so: room that is not needed costs no memory until it is written to.
    """

    def __init__(self, expected: int = 0) -> None:
        self._values = np.empty(max(1024, expected))
        self._rows = 0

    def add(self, block: Any) -> bool:
        """Take an Arrow array of float64; whether all its values that are not null are finite."""
        values = block.to_numpy(zero_copy_only=False)
        end = self._rows + len(values)
        if end > len(self._values):
            grown = np.empty(max(end, len(self._values) * 3 // 2))
            grown[: self._rows] = self._values[: self._rows]
            self._values = grown
        self._values[self._rows : end] = values
        self._rows = end
        return int(np.count_nonzero(np.isfinite(values))) == len(values) - int(block.null_count)

    def join(self) -> np.ndarray:
        """All values."""
        return self._values[: self._rows]


class TextBlocks:
    """Texts of one column."""

    def __init__(self) -> None:
        self._blocks: list[Any] = []

    def add(self, block: Any) -> bool:
        """Take an Arrow array of dictionary-encoded texts; always True."""
        self._blocks.append(block)
        return True

    def add_same(self, text: str | None, rows: int) -> None:
        """Take one text, or None for none, that holds for so many rows."""
        import pyarrow

        codes = np.zeros(rows, np.int32)
        self._blocks.append(
            pyarrow.DictionaryArray.from_arrays(
                pyarrow.array(codes, mask=codes == 0 if text is None else None), pyarrow.array([text or ""])
            )
        )

    def join(self) -> Texts:
        """All texts; the blocks are given up."""
        import pyarrow

        kind = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        joined = pyarrow.chunked_array(self._blocks, kind).unify_dictionaries()
        self._blocks = []
        if not joined.num_chunks:
            return Texts(pyarrow.array([], pyarrow.string()), np.empty(0, np.int32))
        codes = [chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False) for chunk in joined.chunks]
        return Texts(joined.chunk(joined.num_chunks - 1).dictionary, np.concatenate(codes).astype(np.int32, copy=False))
