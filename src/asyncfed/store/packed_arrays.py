"""Named arrays as bytes, as short as they can be: a list of what they are, then their numbers one after another."""

from __future__ import annotations

import struct
from math import prod
from typing import NamedTuple

import numpy as np

from asyncfed.core.record import pack, unpack

_length = struct.Struct("<I")


class _Form(NamedTuple):
    name: str
    dtype: str
    shape: tuple[int, ...]


def pack_arrays(arrays: dict[str, np.ndarray]) -> bytes:
    """The arrays as bytes, little-endian.

    >>> len(pack_arrays({"change": np.zeros(100, np.float32)}))
    419
    """
    ordered = {name: array.astype(array.dtype.newbyteorder("<"), copy=False) for name, array in arrays.items()}
    head = pack([_Form(name, array.dtype.str, array.shape) for name, array in ordered.items()])
    return _length.pack(len(head)) + head + b"".join(array.tobytes() for array in ordered.values())


def unpack_arrays(packed: bytes) -> dict[str, np.ndarray]:
    """The inverse of `pack_arrays`. Raises ValueError if these are no such bytes."""
    if len(packed) < _length.size:
        raise ValueError("there are no arrays")
    end = _length.size + _length.unpack_from(packed)[0]
    arrays: dict[str, np.ndarray] = {}
    for form in unpack(packed[_length.size : end], list[_Form]):
        dtype, count = np.dtype(form.dtype), prod(form.shape)
        if dtype.hasobject or min(form.shape, default=0) < 0 or end + dtype.itemsize * count > len(packed):
            raise ValueError(f'the array "{form.name}" is not all there')
        arrays[form.name] = np.frombuffer(packed, dtype, count, end).reshape(form.shape)
        end += dtype.itemsize * count
    if end != len(packed):
        raise ValueError(f"{len(packed) - end} bytes too many")
    return arrays
