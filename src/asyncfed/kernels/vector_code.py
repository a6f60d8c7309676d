"""Vectors of 32 bytes as LLVM instructions: what a numba intrinsic is written with.

A vector has L = 4 doubles or 8 floats on every machine. LLVM makes of it whatever registers there are: one of AVX2 or
AVX-512, two of NEON or SSE. What is computed, and in which order, is the same on all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import DTypeLike

from asyncfed.kernels.compiled import compiled

VECTOR_BYTES = 32
GROUP = 4
"""Rows that are read at once."""

_INDEX = ir.IntType(64)
_LANE = ir.IntType(32)


def lanes_of(dtype: DTypeLike) -> int:
    """L, the numbers in a vector.

    >>> lanes_of(np.float64), lanes_of(np.float32)
    (4, 8)
    """
    return VECTOR_BYTES // np.dtype(dtype).itemsize


class VectorCode:
    """Appends instructions on numbers of one precision where `builder` stands.

    Args:
        context: what numba compiles for.
        builder: the function that is being written.
        real: numba's float32 or float64.
        vector_bytes: the size of a vector, 32 or 64.
    """

    def __init__(self, context: Any, builder: Any, real: Any, vector_bytes: int = VECTOR_BYTES) -> None:
        self.builder = builder
        self._context, self._real = context, real
        self.bytes = real.bitwidth // 8
        self.lanes = vector_bytes // self.bytes
        self.number = ir.DoubleType() if self.bytes == 8 else ir.FloatType()
        self.vector = ir.VectorType(self.number, self.lanes)
        self.group = ir.VectorType(self.number, GROUP)
        name = f"llvm.fma.v{self.lanes}f{real.bitwidth}"
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        self._fma = cgutils.get_or_insert_function(builder.module, kind, name)

    def index(self, value: int) -> Any:
        """An integer constant, for places and counts."""
        return ir.Constant(_INDEX, value)

    def constant(self, value: float) -> Any:
        """The same number in each of a group's lanes."""
        return ir.Constant(self.group, [value] * GROUP)

    def zero(self) -> Any:
        return ir.Constant(self.vector, [0.0] * self.lanes)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """a · b + c in every lane, rounded once."""
        return self.builder.call(self._fma, [a, b, c])

    def call(self, function: Any, number: Any) -> Any:
        """What a Python function of one number gives, as numba compiles it."""
        return self._context.compile_internal(self.builder, function, self._real(self._real), [number])

    def place(self, base: Any, number: Any, kind: Any) -> Any:
        """The address, as a pointer to `kind`, of an element of the array that begins at `base`."""
        return self.builder.bitcast(self.builder.gep(base, [number]), kind.as_pointer())

    def load(self, base: Any, number: Any, kind: Any = None) -> Any:
        """The vector, or `kind`, that begins at element `number`. Only elements are aligned."""
        return self.builder.load(self.place(base, number, kind or self.vector), align=self.bytes)

    def store(self, value: Any, base: Any, number: Any) -> None:
        self.builder.store(value, self.place(base, number, value.type), align=self.bytes)

    def pick(self, a: Any, b: Any, lanes: list[int]) -> Any:
        """A vector of these lanes of a and b, those of b counted on from a's."""
        return self.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_LANE, len(lanes)), lanes))

    def spread(self, group: Any, lane: int) -> Any:
        """One lane of a group in all lanes of a vector."""
        return self.pick(group, group, [lane] * self.lanes)

    def everywhere(self, number: Any) -> Any:
        """A number in all lanes of a vector."""
        alone = self.builder.insert_element(ir.Constant(self.vector, ir.Undefined), number, ir.Constant(_LANE, 0))
        return self.pick(alone, alone, [0] * self.lanes)

    def grouped(self, numbers: list[Any]) -> Any:
        """Four numbers as a group."""
        group = ir.Constant(self.group, ir.Undefined)
        for lane, number in enumerate(numbers):
            group = self.builder.insert_element(group, number, ir.Constant(_LANE, lane))
        return group

    def ungrouped(self, group: Any) -> list[Any]:
        """The four numbers of a group."""
        return [self.builder.extract_element(group, ir.Constant(_LANE, lane)) for lane in range(GROUP)]

    def sums(self, vectors: list[Any]) -> Any:
        """The sums of the lanes of four vectors, as a group: a transposition whose additions are the sums.

        Of 16 lanes, a_l + a_(l + 8) make eight; of eight, a_l + a_(l + 4) make four; of four, the sum is
        (a_0 + a_1) + (a_2 + a_3).
        """
        add, lanes = self.builder.fadd, self.lanes
        while lanes > GROUP:
            lanes //= 2
            halves = list(range(lanes)), list(range(lanes, 2 * lanes))
            vectors = [add(self.pick(v, v, halves[0]), self.pick(v, v, halves[1])) for v in vectors]
        a, b, c, d = vectors
        ab = add(self.pick(a, b, [0, 4, 2, 6]), self.pick(a, b, [1, 5, 3, 7]))
        cd = add(self.pick(c, d, [0, 4, 2, 6]), self.pick(c, d, [1, 5, 3, 7]))
        return add(self.pick(ab, cd, [0, 1, 4, 5]), self.pick(ab, cd, [2, 3, 6, 7]))


@intrinsic
def fma_of_numbers(_typing: Any, a: Any, _b: Any, _c: Any) -> Any:
    """a · b + c of three numbers of one precision, rounded once."""

    def write(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        kind = arguments[0].type
        name = f"llvm.fma.f{a.bitwidth}"
        return builder.call(
            cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name), arguments
        )

    return (a(a, a, a), write) if a in (types.float32, types.float64) else None


@compiled
def fused_multiply_add(a: Any, b: Any, c: Any, result: Any) -> None:
    """result ← a · b + c of flat arrays, number by number, each rounded once: for the kernels' readable twin."""
    for i in range(result.shape[0]):
        result[i] = fma_of_numbers(a[i], b[i], c[i])


@compiled
def exponentials(values: Any, result: Any) -> None:
    """result ← exp(values) of flat arrays, by the function that kernels call, which is not NumPy's own."""
    for i in range(result.shape[0]):
        result[i] = np.exp(values[i])
