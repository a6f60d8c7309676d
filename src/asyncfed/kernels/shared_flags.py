"""Whole numbers that several threads read and write at once, for kernels that run side by side without a lock.

Every access is sequentially consistent: whoever reads a flag also sees all that was written before it was set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

_ORDER = "seq_cst"


def _place(context: Any, builder: Any, kind: Any, flags: Any, number: Any) -> Any:
    """The address of an element of a flat array of int64."""
    return builder.gep(make_array(kind)(context, builder, flags).data, [number])


def _modify(operation: str) -> Callable[..., Any]:
    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], *arguments[:2])
        return builder.atomic_rmw(operation, place, arguments[2], _ORDER)

    return write


@intrinsic
def swap_flag(_typing: Any, flags: Any, _number: Any, _value: Any) -> Any:
    """Set `flags[number]` to a value; what it was before."""
    return types.int64(flags, types.int64, types.int64), _modify("xchg")


@intrinsic
def add_to_flag(_typing: Any, flags: Any, _number: Any, _value: Any) -> Any:
    """Add a value to `flags[number]`; what it was before."""
    return types.int64(flags, types.int64, types.int64), _modify("add")


@intrinsic
def read_flag(_typing: Any, flags: Any, _number: Any) -> Any:
    """`flags[number]`, as the last thread that set it left it."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature.args[0], *arguments), _ORDER, 8)

    return types.int64(flags, types.int64), write


@intrinsic
def numbers_at(_typing: Any, _address: Any, _size: Any, like: Any) -> Any:
    """The flat array of so many numbers, of the precision of `like`, that begins at an address."""
    kind = types.Array(like.dtype, 1, "C")

    def write(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        array = make_array(kind)(context, builder)
        number = context.get_data_type(like.dtype)
        step = context.get_constant(types.intp, like.dtype.bitwidth // 8)
        populate_array(
            array,
            data=builder.inttoptr(arguments[0], number.as_pointer()),
            shape=cgutils.pack_array(builder, [arguments[1]]),
            strides=cgutils.pack_array(builder, [step]),
            itemsize=step,
            meminfo=None,
        )
        return array._getvalue()

    return kind(types.uint64, types.int64, like), write
