"""Sums of squares of large vectors, in double precision and in one order on every machine.

There are 32 sums side by side: the square of entry j is added to sum j mod 32. At the end the 32 sums are added in
order. They are kept in registers, which a compiler does not do by itself as long as the order of a sum is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled

LANES = 32
WIDTH = 8
"""Numbers in a vector; LLVM makes one or more of it, whatever the machine has."""

PAGE_WORDS = 512
"""64-bit words of a page, over which a check sum of `store/page_sums.py` begins."""

Array = NDArray[Any]


@intrinsic
def add_squares(_typing: Any, one: Any, other: Any, first: Any, end: Any, sums: Any) -> Any:
    """`sums[j mod 32] += (one[j] - other[j])²` for j from `first` to `end`, both multiples of 32."""
    if not (one.dtype in (types.float32, types.float64) and one.dtype == other.dtype and sums.dtype == types.float64):
        return None
    signature = types.void(one, other, types.intp, types.intp, sums)

    def write(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        data = [
            context.make_array(kind)(context, builder, arguments[at]).data
            for kind, at in ((one, 0), (other, 1), (sums, 4))
        ]
        wide = ir.VectorType(ir.DoubleType(), WIDTH)
        narrow = wide if one.dtype == types.float64 else ir.VectorType(ir.FloatType(), WIDTH)

        def place(base: Any, index: Any, offset: int, kind: Any) -> Any:
            index = builder.add(index, ir.Constant(index.type, offset))
            return builder.bitcast(builder.gep(base, [index]), kind.as_pointer())

        def load(base: Any, index: Any, offset: int) -> Any:
            numbers = builder.load(place(base, index, offset, narrow), align=one.dtype.bitwidth // 8)
            return numbers if narrow is wide else builder.fpext(numbers, wide)

        zero, step = ir.Constant(arguments[2].type, 0), ir.Constant(arguments[2].type, LANES)
        totals = []
        for offset in range(0, LANES, WIDTH):
            total = cgutils.alloca_once(builder, wide)
            builder.store(builder.load(place(data[2], zero, offset, wide), align=8), total)
            totals.append(total)
        with cgutils.for_range_slice(builder, arguments[2], arguments[3], step) as (index, _):
            for number, total in enumerate(totals):
                change = builder.fsub(load(data[0], index, number * WIDTH), load(data[1], index, number * WIDTH))
                builder.store(builder.fadd(builder.load(total), builder.fmul(change, change)), total)
        for number, total in enumerate(totals):
            builder.store(builder.load(total), place(data[2], zero, number * WIDTH, wide), align=8)
        return context.get_dummy_value()

    return signature, write


@compiled
def square_distance(one: Array, other: Array) -> float:
    """`|one - other|²`."""
    sums = np.zeros(LANES)
    whole = one.size // LANES * LANES
    add_squares(one, other, 0, whole, sums)
    for j in range(whole, one.size):
        difference = np.float64(one[j]) - np.float64(other[j])
        sums[j - whole] += difference * difference
    total = 0.0
    for lane in range(LANES):
        total += sums[lane]
    return total


@compiled
def square_norm(vector: Array) -> float:
    """`|vector|²`."""
    sums, zeros = np.zeros(LANES), np.zeros(1024, vector.dtype)
    for first in range(0, vector.size, zeros.size):
        part = vector[first : first + zeros.size]
        whole = part.size // LANES * LANES
        add_squares(part, zeros, 0, whole, sums)
        for j in range(whole, part.size):
            sums[j - whole] += np.float64(part[j]) * np.float64(part[j])
    total = 0.0
    for lane in range(LANES):
        total += sums[lane]
    return total


@compiled
def copy_and_measure(
    source: Array, source_words: Array, copy: Array, copy_words: Array, start: Array, page_sums: Array
) -> float:
    """`copy = source`, the sum of the 64-bit words of each whole page of it, and `|copy - start|²`, in one pass.

    Somebody else may change `source` meanwhile. Each page of it is read once, and all that is computed is computed from
    the copy.

    Args:
        source: a model, in memory that is aligned to its numbers.
        source_words: the words of its whole pages.
        copy: as long as the source.
        copy_words: the words of its whole pages.
        start: as long as the source.
        page_sums: as many as there are whole pages; filled in.
    """
    sums = np.zeros(LANES)
    numbers = PAGE_WORDS * 8 // source.itemsize
    for page in range(page_sums.size):
        first = page * PAGE_WORDS
        for j in range(PAGE_WORDS):
            copy_words[first + j] = source_words[first + j]
        total_words = np.uint64(0)
        for j in range(PAGE_WORDS):
            total_words += copy_words[first + j]
        page_sums[page] = total_words
        add_squares(copy, start, page * numbers, (page + 1) * numbers, sums)
    begin = page_sums.size * numbers
    for j in range(begin, source.size):
        copy[j] = source[j]
    whole = source.size // LANES * LANES
    add_squares(copy, start, begin, whole, sums)
    for j in range(whole, source.size):
        difference = np.float64(copy[j]) - np.float64(start[j])
        sums[j - whole] += difference * difference
    total = 0.0
    for lane in range(LANES):
        total += sums[lane]
    return total
