"""Every client's loss and number of right answers in one compiled pass over sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import DataError
from asyncfed.kernels.client_losses import block_loss
from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.rows import frozen
from asyncfed.kernels.sparse_rows import csr_arrays, row_product
from asyncfed.kernels.threads import run_split

Array = NDArray[Any]
_BLOCK = 256


@compiled
def _losses_range(
    begins: Array,
    columns: Array,
    values: Array,
    y: Array,
    offsets: Array,
    first: int,
    last: int,
    weights: Array,
    bias: Any,
    loss: int,
    hinge_width: float,
    sums: Array,
    correct: Array,
) -> None:
    margins = np.empty(_BLOCK, values.dtype)
    for client in range(first, last):
        total = 0.0
        right = 0
        end = offsets[client + 1]
        for a in range(offsets[client], end, _BLOCK):
            b = min(a + _BLOCK, end)
            for i in range(b - a):
                begin, stop = np.uint64(begins[a + i]), np.uint64(begins[a + i + 1])
                margins[i] = row_product(begin, stop, columns, values, weights) + bias
            total += block_loss(loss, hinge_width, margins, y[a:b])
            for i in range(b - a):
                right += 1 if margins[i] * y[a + i] > 0 else 0
        sums[client] = total
        correct[client] = right


def sparse_client_losses(
    x: Any, y: Array, offsets: Array, params: Array, loss_code: int, threads: int = 1, hinge_width: float = 1.0
) -> tuple[Array, Array]:
    """What `client_losses` gives, of rows of a SciPy CSR array, at the cost of their non-zeros.

    The result does not depend on `threads` in any bit.
    """
    trained = np.array(params, dtype=x.dtype)
    extra = trained.shape[0] - x.shape[1] if trained.ndim == 1 else -1
    if extra not in (0, 1):
        raise DataError(
            f"params have shape {trained.shape}; {x.shape[1]} features need that many numbers, or one more."
        )
    weights, bias = trained[: x.shape[1]], trained[-1] if extra else x.dtype.type(0)
    sums = np.empty(len(offsets) - 1)
    correct = np.empty(len(offsets) - 1, np.int64)
    data, targets, bounds = csr_arrays(x), frozen(np.ascontiguousarray(y, x.dtype)), frozen(np.asarray(offsets))
    width = float(hinge_width)

    def run(first: int, last: int) -> None:
        _losses_range(*data, targets, bounds, first, last, weights, bias, loss_code, width, sums, correct)

    if threads == 1:
        run(0, len(sums))
    else:
        run_split(run, np.diff(x.indptr[offsets]), threads)
    return sums, correct
