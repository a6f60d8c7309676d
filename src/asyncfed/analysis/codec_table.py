"""Codecs side by side: the bytes of a message, and what theorems want to know of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import NamedTuple

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import kind_of, to_plain
from asyncfed.core.types import Uplink
from asyncfed.engine.model_shapes import AsksForShapes
from asyncfed.theory.compression import CodecConstants
from asyncfed.theory.compression import near_one as near_one
from asyncfed.uplinks import QSGD, Cast, Codec, LowRank, RandK, Sign, TopK, Whole


class CodecRow(NamedTuple):
    """One codec: what it is, the bytes of a message, how many times as long the model is, and its constants."""

    name: str
    num_bytes: int
    times_fewer: float
    constants: CodecConstants


def codec_rows(num_params: int, itemsize: int = 4) -> list[CodecRow]:
    """The shipped codecs with usual settings, for a model of so many numbers of so many bytes.

    Low-rank codecs are shown for a single matrix that is nearly square, and what is left over as a vector.

    Args:
        num_params: 1 or more.
        itemsize: 4 or 8.

    >>> [row.num_bytes for row in codec_rows(1000)[:2]]
    [4000, 2000]
    """
    if num_params < 1:
        raise ConfigError(f"params is {num_params}; a model has at least 1 parameter.")
    return [_row(codec, num_params, itemsize) for codec in _usual_codecs(num_params)]


def describe_uplinks(uplinks: Sequence[Uplink], num_params: int | None) -> str:
    """The kinds of uplinks one after another, with the constants of those that know them.

    >>> describe_uplinks((TopK(fraction=0.25),), 1000)
    'top_k: δ = 0.25, biased'
    """
    return "; ".join(_describe(uplink, num_params) for uplink in uplinks)


def constants_of(codec: Codec, num_params: int) -> CodecConstants:
    """What the codec says of itself, for a model of so many numbers."""
    return CodecConstants(codec.contraction(num_params), codec.variance(num_params))


def _describe(uplink: Uplink, num_params: int | None) -> str:
    kind, inner = str(kind_of(type(uplink))), getattr(uplink, "codec", None)
    if isinstance(inner, Uplink):
        return f"{kind} of {_describe(inner, num_params)}"
    unknown = num_params is None or (isinstance(uplink, AsksForShapes) and not uplink.shapes)
    if unknown or not isinstance(uplink, Codec):
        return kind
    return f"{kind}: {constants_of(uplink, num_params or 0)}"


def _row(codec: Codec, num_params: int, itemsize: int) -> CodecRow:
    settings = {name: value for name, value in to_plain(codec).items() if name not in ("kind", "shapes")}
    words = ", ".join(f"{name} = {_plain(value)}" for name, value in settings.items())
    num_bytes = codec.size(num_params, itemsize)
    assert num_bytes is not None  # of those listed here
    times = num_params * itemsize / num_bytes
    return CodecRow(f"{kind_of(type(codec))} {words}".strip(), num_bytes, times, constants_of(codec, num_params))


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _usual_codecs(num_params: int) -> list[Codec]:
    rows = isqrt(num_params)
    columns = num_params // rows
    shapes = ((rows, columns), (num_params - rows * columns,))
    return [
        Whole(),
        Cast(to="bfloat16"),
        Cast(to="float16"),
        QSGD(levels=127),
        QSGD(levels=7),
        QSGD(levels=1),
        Sign(),
        Sign(bucket=128),
        TopK(fraction=0.1),
        TopK(fraction=0.01),
        TopK(fraction=0.01, values="bfloat16"),
        RandK(fraction=0.01),
        RandK(fraction=0.01, scaled=False),
        LowRank(rank=2, shapes=shapes),
    ]
