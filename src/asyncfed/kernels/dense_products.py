"""Products of small matrices for `kernels/perceptron_loops.py`, as LLVM vector code in one order of sums.

A vector has 64 bytes on every machine: L = 16 floats or 8 doubles. Matrices are rows of a whole number of vectors,
filled up with zeros. For every number that is computed, the order is fixed:

- of `row_products`, lane l begins at 0 and takes one vector after another, a_l ← fma(x_(l + kL), w_(l + kL), a_l); the
  lanes are then summed as `VectorCode.sums` says;
- of `add_weighted_rows`, a number takes one row after another, c ← fma(weight, row, c).

So no result depends on where a matrix lies in memory, on which numbers are computed side by side, or on the tile.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.vector_code import GROUP, VectorCode

Array = NDArray[Any]

DENSE_BYTES = 64

WIDE_REGISTERS = bool(binding.get_host_cpu_features().get("avx512f"))
"""Whether 32 vectors fit into registers, or eight (as two each): a tile of sums should."""

_ROWS = 4 if WIDE_REGISTERS else 1
_TALL, _WIDE = (4, 4) if WIDE_REGISTERS else (2, 2)
_STRIP = 64
"""Rows whose products are made before the next rows are read: they stay in the second cache."""


def _row_tile(rows: int) -> Any:
    """An intrinsic: the products of so many rows of x with four rows of w."""

    @intrinsic
    def tile(_typing: Any, x: Any, _i: Any, w: Any, _j: Any, out: Any) -> Any:
        """out[i + a, j + b] ← x[i + a] · w[j + b]."""

        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            code = VectorCode(context, builder, x.dtype, DENSE_BYTES)
            matrices = [_Matrix(context, builder, signature.args[k], arguments[k]) for k in (0, 2, 4)]
            (xs, ws, outs), i, j = matrices, arguments[1], arguments[3]
            x_rows = [xs.row(builder.add(i, code.index(a))) for a in range(rows)]
            w_rows = [ws.row(builder.add(j, code.index(b))) for b in range(GROUP)]
            sums = [[_variable(builder, code.zero()) for _ in w_rows] for _ in x_rows]
            step = code.index(code.lanes)
            with cgutils.for_range_slice(builder, code.index(0), xs.width, step) as (k, _):
                w_parts = [code.load(ws.data, builder.add(row, k)) for row in w_rows]
                for row, of_row in zip(x_rows, sums, strict=True):
                    part = code.load(xs.data, builder.add(row, k))
                    for other, total in zip(w_parts, of_row, strict=True):
                        builder.store(code.fma(part, other, builder.load(total)), total)
            for a, of_row in enumerate(sums):
                place = builder.add(outs.row(builder.add(i, code.index(a))), j)
                code.store(code.sums([builder.load(total) for total in of_row]), outs.data, place)
            return context.get_dummy_value()

        return types.void(x, types.int64, w, types.int64, out), write

    return tile


def _sum_tile(tall: int, wide: int) -> Any:
    """An intrinsic: the weighted sums of rows of b, in `tall` rows and `wide` vectors of c."""

    @intrinsic
    def tile(
        _typing: Any, weights: Any, _count: Any, _down: Any, _across: Any, b: Any, c: Any, _i: Any, _k: Any, _keep: Any
    ) -> Any:
        """c[i + a, k …] ← keep · c[i + a, k …] + Σ_(r < count) weights[r · down + (i + a) · across] · b[r, k …]."""

        def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            code = VectorCode(context, builder, b.dtype, DENSE_BYTES)
            flat, bs, cs = (_Matrix(context, builder, signature.args[n], arguments[n]) for n in (0, 4, 5))
            count, down, across, i, k, keep = (arguments[n] for n in (1, 2, 3, 6, 7, 8))
            kept, nothing = code.everywhere(keep), builder.fcmp_ordered("==", keep, code.number(0.0))
            columns = [builder.add(k, code.index(v * code.lanes)) for v in range(wide)]
            rows = [builder.add(i, code.index(a)) for a in range(tall)]
            places = [[builder.add(cs.row(row), column) for column in columns] for row in rows]
            firsts = [builder.mul(row, across) for row in rows]
            sums = []
            for of_row in places:
                before = [builder.fmul(kept, code.load(cs.data, place)) for place in of_row]
                sums.append([_variable(builder, builder.select(nothing, code.zero(), value)) for value in before])
            with cgutils.for_range(builder, count) as loop:
                row = bs.row(loop.index)
                parts = [code.load(bs.data, builder.add(row, column)) for column in columns]
                begin = builder.mul(loop.index, down)
                for first, of_row in zip(firsts, sums, strict=True):
                    weight = code.everywhere(code.load(flat.data, builder.add(begin, first), code.number))
                    for part, total in zip(parts, of_row, strict=True):
                        builder.store(code.fma(weight, part, builder.load(total)), total)
            for of_row, totals in zip(places, sums, strict=True):
                for place, total in zip(of_row, totals, strict=True):
                    code.store(builder.load(total), cs.data, place)
            return context.get_dummy_value()

        numbers = types.int64, types.int64, types.int64
        return types.void(weights, *numbers, b, c, types.int64, types.int64, b.dtype), write

    return tile


class _Matrix:
    """An array of the function that is being written; `row` is the place where a row of a matrix begins."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        struct = make_array(kind)(context, builder, value)
        self.data, self._builder = struct.data, builder
        self.width = builder.extract_value(struct.shape, kind.ndim - 1)

    def row(self, number: Any) -> Any:
        return self._builder.mul(number, self.width)


def _variable(builder: Any, value: Any) -> Any:
    """A place for a value that changes in a loop; LLVM finds it a register."""
    place = cgutils.alloca_once(builder, value.type)
    builder.store(value, place)
    return place


@intrinsic
def copy_numbers(_typing: Any, source: Any, _begin: Any, _count: Any, target: Any, _place: Any) -> Any:
    """target[place …] ← source[begin …], `count` numbers, places being those of the arrays made flat.

    The loop that numba makes of an assignment is not vector code, and takes longer than the sums that follow.
    """

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        datas = [_Matrix(context, builder, signature.args[k], arguments[k]).data for k in (0, 3)]
        places = [builder.gep(data, [arguments[k]]) for data, k in zip(datas, (1, 4), strict=True)]
        cgutils.raw_memcpy(builder, places[1], places[0], arguments[2], source.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(source, types.int64, types.int64, target, types.int64), write


_several_rows, _one_row = _row_tile(_ROWS), _row_tile(1)
_square, _upright, _level, _single = (_sum_tile(a, b) for a in (_TALL, 1) for b in (_WIDE, 1))


@compiled
def row_products(x: Array, rows: int, w: Array, out: Array) -> None:
    """out[i, j] ← x[i] · w[j] for i < `rows` and all j; `w` has a multiple of four rows, `out` room for them."""
    for first in range(0, rows, _STRIP):
        end = min(first + _STRIP, rows)
        for j in range(0, w.shape[0], GROUP):
            i = first
            while i + _ROWS <= end:
                _several_rows(x, i, w, j, out)
                i += _ROWS
            while i < end:
                _one_row(x, i, w, j, out)
                i += 1


@compiled
def add_weighted_rows(
    weights: Array, count: int, down: int, across: int, b: Array, c: Array, rows: int, keep: float
) -> None:
    """c[i] ← keep · c[i] + Σ_r weights[r · down + i · across] · b[r], for i < `rows` and r < `count`.

    With `keep` 0, what c holds does not matter, not even NaN. `weights` is flat, b and c are of one width.
    """
    lanes = DENSE_BYTES // b.itemsize
    width = b.shape[1]
    k = 0
    while k + _WIDE * lanes <= width:
        i = 0
        while i + _TALL <= rows:
            _square(weights, count, down, across, b, c, i, k, keep)
            i += _TALL
        while i < rows:
            _level(weights, count, down, across, b, c, i, k, keep)
            i += 1
        k += _WIDE * lanes
    while k < width:
        i = 0
        while i + _TALL <= rows:
            _upright(weights, count, down, across, b, c, i, k, keep)
            i += _TALL
        while i < rows:
            _single(weights, count, down, across, b, c, i, k, keep)
            i += 1
        k += lanes
