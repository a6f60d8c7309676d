"""One mini-batch of `kernels/sgd.py`, four rows at once, as LLVM vector code.

**The order of sums** is that of the readable twin (`kernels/reference.py`) on every machine. Rows and weights are cut
into blocks of L columns (`vector_code.py`); the bias is a last column of ones, and the last block is filled up with
zeros. With z the row so filled up:

- lane l of a margin begins as w_l z_l and takes one block after another, a_l ← fma(w_(l + kL), z_(l + kL), a_l);
- eight lanes are made four, a_l + a_(l + 4), and the margin is (a_0 + a_1) + (a_2 + a_3);
- a gradient begins at 0 and takes one row after another, g_j ← fma(slope_i, z_ij, g_j);
- all else is rounded operation by operation, as it is written.

fma rounds once: one instruction with AVX2, AVX-512 and NEON, a call of the C library's function where the processor
has none, with the same bits, but slow. There is no fast-math, and rows that are read at once are not summed together.

**Small models**, of up to four blocks, keep weights and gradient in registers and have code of their own for each
number of blocks. Larger ones walk block by block through memory: four rows, the weights and the gradient of a few
hundred columns fit into the first cache, so that the gradient finds there the rows that the margins have read.

Only the last block of a row cannot be read where it lies. It is copied for each training into `tails` (n, L), 32 bytes
a row, so the data need not be stored a second time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.vector_code import GROUP, VECTOR_BYTES, VectorCode
from asyncfed.kernels.vector_slopes import SLOPES

Array = NDArray[Any]

IN_REGISTERS = 4
"""Blocks up to which weights and gradient stay in registers."""


@compiled
def empty_tails(rows: int, x: Array, fit_bias: bool, blocks: int) -> Array:
    """Room for the last blocks of so many rows, with what is the same in all: a one for the bias, zeros."""
    lanes = VECTOR_BYTES // x.itemsize
    tails = np.zeros((rows, lanes), x.dtype)
    if fit_bias:
        tails[:, x.shape[1] - (blocks - 1) * lanes] = x.dtype.type(1)
    return tails


@compiled
def fill_tails(x: Array, blocks: int, tails: Array) -> None:
    """Copy the columns of the last block, if any are left for it."""
    n, d = x.shape
    first = (blocks - 1) * tails.shape[1]
    for i in range(n):
        for j in range(first, d):
            tails[i, j - first] = x[i, j]


@intrinsic
def batch_step(
    _typing: Any,
    x: Any,
    tails: Any,
    y: Any,
    order: Any,
    _first: Any,
    _size: Any,
    weights: Any,
    gradient: Any,
    margins: Any,
    _loss: Any,
    _hinge_width: Any,
    _scale: Any,
    _plain: Any,
) -> Any:
    """The margins of rows `order[first : first + size]`, and the sum of their gradients.

    If `plain`, the step weights ← weights − scale · gradient is made, and `gradient` holds nothing of use afterwards.
    `weights` and `gradient` have a whole number of blocks, `margins` room for `size` rounded up to four.
    """
    real = x.dtype
    signature = types.void(
        *(x, tails, y, order, types.int64, types.int64, weights, gradient, margins),
        *(types.int64, real, real, types.boolean),
    )

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        structs = [
            make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
            for kind, value in zip(signature.args, arguments, strict=True)
        ]
        _BatchStep(VectorCode(context, builder, real), *structs).write()
        return context.get_dummy_value()

    return signature, write


class _BatchStep:
    """What `batch_step` writes. Names without further word are values of the function that is being written."""

    def __init__(self, code: VectorCode, *arguments: Any) -> None:
        x, tails, y, order, first, size, weights, gradient, margins, loss, hinge_width, scale, plain = arguments
        self.code, builder = code, code.builder
        self.builder = builder
        self.x, self.tails, self.y, self.order = x.data, tails.data, y.data, order.data
        self.weights, self.gradient, self.margins = weights.data, gradient.data, margins.data
        self.columns = builder.extract_value(x.shape, 1)
        length = builder.extract_value(weights.shape, 0)
        self.blocks = builder.udiv(length, code.index(code.lanes))
        self.first, self.size = first, size
        self.loss, self.hinge_width, self.scale, self.plain = loss, hinge_width, scale, plain

    def write(self) -> None:
        builder = self.builder
        end = builder.append_basic_block("stepped")
        large = builder.append_basic_block("large")
        choice = builder.switch(self.blocks, large)
        for blocks in range(1, IN_REGISTERS + 1):
            place = builder.append_basic_block(f"blocks{blocks}")
            choice.add_case(self.code.index(blocks), place)
            builder.position_at_end(place)
            self._in_registers(blocks)
            builder.branch(end)
        builder.position_at_end(large)
        self._in_memory()
        builder.branch(end)
        builder.position_at_end(end)

    # ---- small models ------------------------------------------------------------------------------------------

    def _in_registers(self, blocks: int) -> None:
        code, builder = self.code, self.builder
        starts = [code.index(k * code.lanes) for k in range(blocks)]
        weights = [code.load(self.weights, start) for start in starts]
        gradient = [self._variable(code.zero()) for _ in starts]

        def read(row: Any) -> list[Any]:
            begin = builder.mul(row, self.columns)
            whole = [code.load(self.x, builder.add(begin, start)) for start in starts[:-1]]
            return [*whole, code.load(self.tails, builder.mul(row, code.index(code.lanes)))]

        def lanes(z: list[Any]) -> Any:
            total = builder.fmul(weights[0], z[0])
            for w, block in zip(weights[1:], z[1:], strict=True):
                total = code.fma(w, block, total)
            return total

        for rows, there in self._groups():
            z = [read(row) for row in rows]
            slopes = self._slopes(code.sums([lanes(blocks_of_row) for blocks_of_row in z]), rows)
            for k, variable in enumerate(gradient):
                total = builder.load(variable)
                for lane, row_there in enumerate(there):
                    total = self._added(code.spread(slopes, lane), z[lane][k], total, row_there)
                builder.store(total, variable)
        with builder.if_else(self.plain) as (plain, otherwise):
            with plain:
                scale = code.everywhere(self.scale)
                for w, variable, start in zip(weights, gradient, starts, strict=True):
                    code.store(builder.fsub(w, builder.fmul(scale, builder.load(variable))), self.weights, start)
            with otherwise:
                for variable, start in zip(gradient, starts, strict=True):
                    code.store(builder.load(variable), self.gradient, start)

    # ---- large models ------------------------------------------------------------------------------------------

    def _in_memory(self) -> None:
        code, builder = self.code, self.builder
        lanes = code.index(code.lanes)
        last = builder.mul(builder.sub(self.blocks, code.index(1)), lanes)
        with self._from_to(code.index(0), builder.add(last, lanes)) as place:
            code.store(code.zero(), self.gradient, place)
        for rows, there in self._groups():
            begins = [builder.mul(row, self.columns) for row in rows]
            ends = [code.load(self.tails, builder.mul(row, lanes)) for row in rows]
            w = code.load(self.weights, code.index(0))
            totals = [self._variable(builder.fmul(w, code.load(self.x, begin))) for begin in begins]
            with self._from_to(lanes, last) as place:
                w = code.load(self.weights, place)
                for begin, total in zip(begins, totals, strict=True):
                    z = code.load(self.x, builder.add(begin, place))
                    builder.store(code.fma(w, z, builder.load(total)), total)
            w = code.load(self.weights, last)
            sums = [code.fma(w, end, builder.load(total)) for end, total in zip(ends, totals, strict=True)]
            slopes = self._slopes(code.sums(sums), rows)
            spread = [code.spread(slopes, lane) for lane in range(GROUP)]
            with self._from_to(code.index(0), last) as place:
                total = code.load(self.gradient, place)
                for begin, slope, row_there in zip(begins, spread, there, strict=True):
                    total = self._added(slope, code.load(self.x, builder.add(begin, place)), total, row_there)
                code.store(total, self.gradient, place)
            total = code.load(self.gradient, last)
            for end, slope, row_there in zip(ends, spread, there, strict=True):
                total = self._added(slope, end, total, row_there)
            code.store(total, self.gradient, last)
        with builder.if_then(self.plain):
            scale = code.everywhere(self.scale)
            with self._from_to(code.index(0), builder.add(last, lanes)) as place:
                change = builder.fmul(scale, code.load(self.gradient, place))
                code.store(builder.fsub(code.load(self.weights, place), change), self.weights, place)

    # ---- both --------------------------------------------------------------------------------------------------

    def _groups(self) -> Iterator[tuple[list[Any], list[Any]]]:
        """Write what follows twice: for four rows at a time, and for the one to three that may be left.

        Gives the rows' numbers, and whether each is there: of a group that is not full, the last row is read in place
        of those that are missing, and not added.
        """
        code, builder = self.code, self.builder
        full = builder.and_(self.size, code.index(-GROUP))
        with cgutils.for_range_slice(builder, code.index(0), full, code.index(GROUP)) as (place, _):
            self.place = place
            yield [self._row(builder.add(place, code.index(lane))) for lane in range(GROUP)], [None] * GROUP
        with builder.if_then(builder.icmp_signed("<", full, self.size)):
            self.place = full
            end = builder.sub(self.size, code.index(1))
            places = [builder.add(full, code.index(lane)) for lane in range(GROUP)]
            there = [builder.icmp_signed("<=", place, end) for place in places]
            rows = [self._row(builder.select(b, place, end)) for b, place in zip(there, places, strict=True)]
            yield rows, there

    def _row(self, place: Any) -> Any:
        number = self.code.load(self.order, self.builder.add(self.first, place), ir.IntType(32))
        return self.builder.zext(number, place.type)

    def _added(self, slope: Any, z: Any, total: Any, there: Any) -> Any:
        more = self.code.fma(slope, z, total)
        return more if there is None else self.builder.select(there, more, total)

    def _variable(self, value: Any) -> Any:
        """A place for a value that changes in a loop; LLVM finds it a register."""
        place = cgutils.alloca_once(self.builder, value.type)
        self.builder.store(value, place)
        return place

    @contextmanager
    def _from_to(self, begin: Any, end: Any) -> Iterator[Any]:
        """Write what follows for the beginning of each block."""
        step = self.code.index(self.code.lanes)
        with cgutils.for_range_slice(self.builder, begin, end, step) as (place, _):
            yield place

    def _slopes(self, margins: Any, rows: list[Any]) -> Any:
        """∂f/∂m of four rows, as a group. Their margins are kept."""
        code, builder = self.code, self.builder
        code.store(margins, self.margins, self.place)
        targets = code.grouped([code.load(self.y, row, code.number) for row in rows])
        slopes = cgutils.alloca_once(builder, code.group)
        end = builder.append_basic_block("sloped")
        unknown = builder.append_basic_block("unknown")
        choice = builder.switch(self.loss, unknown)
        for loss, formula in SLOPES.items():
            place = builder.append_basic_block(f"loss{loss}")
            choice.add_case(code.index(loss), place)
            builder.position_at_end(place)
            builder.store(formula(code, margins, targets, self.hinge_width), slopes)
            builder.branch(end)
        builder.position_at_end(unknown)
        builder.store(code.constant(float("nan")), slopes)
        builder.branch(end)
        builder.position_at_end(end)
        return builder.load(slopes)
