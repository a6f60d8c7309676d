"""The data as a kernel reads them: checked, and read-only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import DataError

Array = NDArray[Any]


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
