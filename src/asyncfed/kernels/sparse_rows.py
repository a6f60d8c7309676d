"""Sparse rows (CSR) as a kernel reads them: checked, read-only, and nothing copied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import DataError
from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.rows import PackedRows, frozen
from asyncfed.kernels.vector_code import fma_of_numbers

Array = NDArray[Any]

_ONE, _TWO, _THREE, _FOUR = (np.uint64(number) for number in (1, 2, 3, 4))
_UNSIGNED = {np.dtype(np.int32): np.uint32, np.dtype(np.int64): np.uint64}


def sparse_rows(x: Any, y: Array, offsets: Array) -> PackedRows:
    """Rows of the SciPy CSR array `x` (N, d), in canonical form, with their targets `y` (N,)."""
    check_sparse_rows(x, y)
    arrays = (*csr_arrays(x), frozen(y), frozen(offsets))
    return PackedRows(arrays, offsets, x.shape[1], x.nnz / max(1, x.shape[0]), x.dtype)


def csr_arrays(x: Any) -> tuple[Array, Array, Array]:
    """(where each row begins, columns, values). Columns are viewed as unsigned: none has to be checked for its sign."""
    return frozen(x.indptr), frozen(x.indices.view(_UNSIGNED[x.indices.dtype])), frozen(x.data)


def check_sparse_rows(x: Any, y: Array) -> None:
    """A kernel reads columns without looking at their limits, so what SciPy lets pass is refused here."""
    if getattr(x, "format", "") != "csr" or x.dtype not in (np.float32, np.float64):
        raise DataError(
            f"x is {type(x).__name__} of {getattr(x, 'dtype', 'no dtype')}; a kernel for sparse rows needs a SciPy CSR "
            "array of float32 or float64. Convert it with scipy.sparse.csr_array(x, dtype=np.float64)."
        )
    if y.shape != x.shape[:1] or y.dtype != x.dtype or not y.flags.c_contiguous:
        raise DataError(
            f"y has dtype {y.dtype} and shape {y.shape}; it needs x's dtype {x.dtype} and one number for each of "
            f"x's {x.shape[0]} rows."
        )
    if not x.has_canonical_format:
        raise DataError("x has rows that name a column twice, or not in order. Call x.sum_duplicates() first.")
    beyond = x.nnz and not (int(x.indices.min()) >= 0 and int(x.indices.max()) < x.shape[1])
    if beyond or x.indptr[0] != 0 or x.indptr[-1] != len(x.data) or len(x.indices) != len(x.data):
        raise DataError(
            f"x names columns from {x.indices.min(initial=0)} to {x.indices.max(initial=0)} of {x.shape[1]}, or its "
            "indptr does not fit its data: it was put together wrongly. Call x.check_format() to see how."
        )


@compiled
def row_product(begin: np.uint64, end: np.uint64, columns: Array, values: Array, weights: Array) -> Any:
    """Σ values · weights[columns] of the non-zeros `begin` up to `end`, in four lanes which take them in turn.

    It is (a_0 + a_1) + (a_2 + a_3). Places are unsigned, and not slices, which cost more than the sum of a short row.
    """
    zero = values.dtype.type(0)
    a0, a1, a2, a3 = zero, zero, zero, zero
    whole = end - (end - begin) % _FOUR
    for k in range(begin, whole, _FOUR):
        a0 = fma_of_numbers(values[k], weights[columns[k]], a0)
        a1 = fma_of_numbers(values[k + _ONE], weights[columns[k + _ONE]], a1)
        a2 = fma_of_numbers(values[k + _TWO], weights[columns[k + _TWO]], a2)
        a3 = fma_of_numbers(values[k + _THREE], weights[columns[k + _THREE]], a3)
    if whole < end:
        a0 = fma_of_numbers(values[whole], weights[columns[whole]], a0)
    if whole + _ONE < end:
        a1 = fma_of_numbers(values[whole + _ONE], weights[columns[whole + _ONE]], a1)
    if whole + _TWO < end:
        a2 = fma_of_numbers(values[whole + _TWO], weights[columns[whole + _TWO]], a2)
    return (a0 + a1) + (a2 + a3)


@compiled
def add_row(begin: np.uint64, end: np.uint64, columns: Array, values: Array, factor: Any, weights: Array) -> None:
    """weights[columns] ← fma(factor, values, weights[columns]) of the non-zeros `begin` up to `end`.

    A row names a column once, so four are read before the first of them is written.
    """
    whole = end - (end - begin) % _FOUR
    for k in range(begin, whole, _FOUR):
        j0, j1, j2, j3 = columns[k], columns[k + _ONE], columns[k + _TWO], columns[k + _THREE]
        w0 = fma_of_numbers(factor, values[k], weights[j0])
        w1 = fma_of_numbers(factor, values[k + _ONE], weights[j1])
        w2 = fma_of_numbers(factor, values[k + _TWO], weights[j2])
        w3 = fma_of_numbers(factor, values[k + _THREE], weights[j3])
        weights[j0], weights[j1], weights[j2], weights[j3] = w0, w1, w2, w3
    for k in range(whole, end):
        weights[columns[k]] = fma_of_numbers(factor, values[k], weights[columns[k]])
