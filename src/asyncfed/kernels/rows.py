"""The data as a kernel reads them: checked, and read-only."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import DataError

Array = NDArray[Any]


class PackedRows(NamedTuple):
    """All clients' rows, one client after another, checked and read-only.

    Args:
        arrays: what the compiled loops are handed, `offsets` last.
        offsets: client c has rows `offsets[c]` up to `offsets[c + 1]`, (C + 1,) int64.
        columns: d, the features of a row.
        cells_per_row: how many numbers a row holds, on average.
        dtype: of the features, the targets and the params, float32 or float64.
    """

    arrays: tuple[Array, ...]
    offsets: Array
    columns: int
    cells_per_row: float
    dtype: np.dtype[Any]


def dense_rows(x: Array, y: Array, offsets: Array) -> PackedRows:
    """Rows of `x` (N, d) with their targets `y` (N,)."""
    check_rows(x, y)
    return PackedRows((frozen(x), frozen(y), frozen(offsets)), offsets, x.shape[1], x.shape[1], x.dtype)


def frozen(array: Array) -> Array:
    """A read-only view, so that a kernel is compiled once and not again for arrays that happen to be read-only."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def check_rows(x: Array, y: Array) -> None:
    """The kernels read rows as they lie in memory; a silent copy of the data could be huge, so none is made."""
    if x.ndim != 2 or x.dtype not in (np.float32, np.float64) or not x.flags.c_contiguous:
        raise DataError(
            f"x has dtype {x.dtype} and shape {x.shape}; a kernel needs C-contiguous rows (N, d) of float32 "
            "or float64. Convert it with np.ascontiguousarray(x, dtype=np.float64)."
        )
    if y.shape != x.shape[:1] or y.dtype != x.dtype or not y.flags.c_contiguous:
        raise DataError(
            f"y has dtype {y.dtype} and shape {y.shape}; it needs x's dtype {x.dtype} and one number for each of "
            f"x's {x.shape[0]} rows."
        )
