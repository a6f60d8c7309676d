"""Floats in fewer bytes: how values are narrowed for the wire, and widened again.

Narrowing rounds to the nearest number of the format, ties to the even one, once. A finite number beyond the largest of
the format becomes that largest one, with its sign; infinities and NaN stay what they are, so that whoever checks
changes finds them.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from asyncfed.core.record import UNSET, UnsetType

Narrow: TypeAlias = Literal["float32", "bfloat16", "float16"]
Format: TypeAlias = Literal["same", "float32", "bfloat16", "float16"] | UnsetType
"""UNSET and "same": the model's own type."""

LARGEST_BFLOAT16 = np.uint16(0x7F7F)
NAN_BFLOAT16 = np.uint16(0x7FC0)

_WIRE_TYPES: dict[Format, np.dtype[Any]] = {
    "float32": np.dtype("<f4"),
    "bfloat16": np.dtype("<u2"),
    "float16": np.dtype("<f2"),
}
_ROUNDING: dict[Format, float] = {"float32": 2.0**-24, "bfloat16": 2.0**-8}


def is_same(form: Format) -> bool:
    """Whether values are sent as they are."""
    return form is UNSET or form == "same"


def wire_type(form: Format, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What values of a model of this type are sent as; bfloat16, which NumPy does not have, as its 16 bits."""
    return _WIRE_TYPES.get(form, dtype)


def wire_bytes(form: Format, itemsize: int) -> int:
    """Bytes of a value of a model whose numbers take `itemsize`."""
    return itemsize if is_same(form) else _WIRE_TYPES[form].itemsize


def rounding_share(form: Format) -> float | None:
    """The most that narrowing changes a number, as a share of it: 2**-8 for bfloat16, 2**-24 for float32, 0 for "same".

    It holds for zero and for numbers from 1.2e-38 to the largest of the format. None for float16, whose smallest normal
    number, 6e-5, is well within what changes are made of: below 3e-8 all is lost.
    """
    return 0.0 if is_same(form) else _ROUNDING.get(form)


def narrow(values: np.ndarray, form: Format) -> np.ndarray:
    """The values as they are sent.

    >>> narrow(np.array([1.0, 1e6, -1e6]), "float16").tolist()
    [1.0, 65504.0, -65504.0]
    """
    if is_same(form):
        return values
    if form == "bfloat16":
        return _to_bfloat16(values)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        narrowed = values.astype(_WIRE_TYPES[form])
    beyond = np.isinf(narrowed)
    if beyond.any():
        beyond &= np.isfinite(values)
        narrowed[beyond] = np.copysign(np.finfo(narrowed.dtype).max, narrowed[beyond])
    return narrowed


def widen(sent: np.ndarray, form: Format, dtype: np.dtype[Any]) -> np.ndarray:
    """The values that were meant, in the model's type. Exact.

    >>> widen(narrow(np.array([1.0, 3.14159265]), "bfloat16"), "bfloat16", np.dtype(np.float64)).tolist()
    [1.0, 3.140625]
    """
    if is_same(form):
        return sent
    if form == "bfloat16":
        sent = (sent.astype(np.uint32) << np.uint32(16)).view(np.float32)
    with np.errstate(invalid="ignore"):  # any NaN is one, whatever its bits
        return sent.astype(dtype)


def _to_bfloat16(values: np.ndarray) -> np.ndarray:
    """The upper half of a float32, rounded."""
    if values.dtype == np.float32:
        bits = values.view(np.uint32)
    else:
        bits = _to_odd_float32(values)
    rounded = bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
    halves = (rounded >> np.uint32(16)).astype(np.uint16)
    largest_size = halves & np.uint16(0x7FFF)
    if largest_size.max(initial=0) > LARGEST_BFLOAT16 or not np.isfinite(values).all():
        beyond = np.isfinite(values) & (largest_size > LARGEST_BFLOAT16)
        halves[beyond] = (halves[beyond] & np.uint16(0x8000)) | LARGEST_BFLOAT16
        halves[np.isnan(values)] = NAN_BFLOAT16
    return halves


def _to_odd_float32(values: np.ndarray) -> np.ndarray:
    """Bits of float32 numbers, cut off towards zero, whose last bit is set if anything was cut off.

    To round them again then gives what rounding once would have given: no tie is mistaken for one.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        nearest = values.astype(np.float32)
        back = nearest.astype(np.float64)
        bits = nearest.view(np.uint32).copy()
        bits -= np.abs(back) > np.abs(values)
        bits |= (back != values) & np.isfinite(values)
    return bits
