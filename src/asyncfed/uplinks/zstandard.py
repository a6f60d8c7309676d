"""Zstandard: the message of another codec, compressed without loss."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, Record, ValidationError, pack, unpack
from asyncfed.core.types import Uplink
from asyncfed.registry import register
from asyncfed.uplinks.chain import Arrays
from asyncfed.uplinks.codec import Codec
from asyncfed.uplinks.top_k import TopK

TYPES = frozenset(np.dtype(kind).newbyteorder("<").str for kind in "bhilqBHILQefd?")
HEADER_BYTES = 4096
"""What the names, types and shapes of a message's arrays may take."""

MOST_ARRAYS = 64


class Described(Record):
    """One array of the message inside: what it is called, and how its bytes are to be read."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class Contents(Record):
    """What comes before the bytes of all arrays."""

    arrays: tuple[Described, ...]


@register("uplink")
class Zstandard(Config, tag_field="kind", tag="zstandard"):
    """The message of a codec, compressed; what arrives is exactly what the codec sent. Needs the extra `zstd`.

    The bytes of numbers are sorted by significance first, since signs and exponents repeat and last digits do not. It
    helps where entries repeat: levels of QSGD with few bits, changes with many zeros. Top-k messages and plain floats
    hardly shrink. The size of a message is known only after training, and may differ between versions of the library.

    Args:
        codec: whose messages; an uplink without a memory of its own.
        level: 1 (fast) to 22 (small).

    Y. Collet & M. Kucherawy, "Zstandard Compression and the 'application/zstd' Media Type", RFC 8878, 2021.
    """

    codec: Uplink = TopK()
    level: int = 3
    remembers = False

    def __post_init__(self) -> None:
        if not 1 <= self.level <= 22:
            raise ConfigError(f"uplink.level is {self.level}; it must be between 1 and 22.")
        if self.codec.remembers:
            raise ConfigError(
                f"uplink.codec is {type(self.codec).__name__}, which remembers something; zstandard wraps codecs "
                "without a memory. Put zstandard inside it instead."
            )

    def init(self, num_params: int, dtype: np.dtype[Any]) -> Arrays:
        """No memory."""
        return {}

    def size(self, num_params: int, itemsize: int) -> int | None:
        """Known only after training."""
        return None

    def contraction(self, num_params: int) -> float | None:
        """The codec's: nothing is lost."""
        return self.codec.contraction(num_params) if isinstance(self.codec, Codec) else None

    def variance(self, num_params: int) -> float | None:
        """The codec's: nothing is lost."""
        return self.codec.variance(num_params) if isinstance(self.codec, Codec) else None

    def encode(self, memory: Arrays, change: np.ndarray, key: int) -> tuple[Arrays | None, Arrays]:
        """The codec's message: a header, then all bytes, compressed."""
        message, _ = self.codec.encode({}, change, key)
        if not message:
            return None, memory
        arrays = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in message.items()}
        header = pack(Contents(tuple(Described(name, a.dtype.str, a.shape) for name, a in arrays.items())))
        pieces = [len(header).to_bytes(4, "little"), header, *map(_by_significance, arrays.values())]
        packed = _load().ZstdCompressor(level=self.level).compress(b"".join(pieces))
        return {"packed": np.frombuffer(packed, np.uint8).copy()}, memory

    def decode(self, message: Arrays, num_params: int, dtype: np.dtype[Any]) -> np.ndarray:
        """What the codec makes of its message. Nothing is unpacked that says it is longer than a message can be."""
        packed = message.get("packed")
        if not isinstance(packed, np.ndarray) or packed.dtype != np.uint8 or packed.ndim != 1:
            raise ValueError('it has no bytes "packed"')
        declared = self.codec.size(num_params, dtype.itemsize)
        longest = HEADER_BYTES + (2 * num_params * dtype.itemsize if declared is None else declared)
        change: np.ndarray = self.codec.decode(_read(_unpack(packed.tobytes(), longest)), num_params, dtype)
        return change


def _load() -> Any:
    try:
        import zstandard
    except ModuleNotFoundError as error:
        raise ConfigError(
            "The uplink zstandard needs the package of the same name on every client and on the server. Install it "
            "with `pip install 'asyncfed[zstd]'`."
        ) from error
    return zstandard


def _unpack(packed: bytes, longest: int) -> bytes:
    library = _load()
    try:
        length = library.get_frame_parameters(packed).content_size
        if length > longest:  # also what says nothing of its length: the largest whole number stands for that
            raise ValueError(f"it unpacks to more than the {longest} bytes that a message may have")
        unpacked: bytes = library.ZstdDecompressor().decompress(packed, max_output_size=longest, allow_extra_data=False)
    except library.ZstdError as error:
        raise ValueError(f"it cannot be unpacked ({error})") from error
    return unpacked


def _read(data: bytes) -> Arrays:
    first = 4 + int.from_bytes(data[:4], "little")
    try:
        contents = unpack(data[4:first], Contents)
    except ValidationError as error:
        raise ValueError(f"what it unpacks to is no message ({error})") from error
    if len(data) < 4 or len(contents.arrays) > MOST_ARRAYS:
        raise ValueError("what it unpacks to is no message")
    arrays: Arrays = {}
    for part in contents.arrays:
        if part.dtype not in TYPES or len(part.shape) > 4 or any(not 0 <= size < 2**40 for size in part.shape):
            raise ValueError(f"it holds {part.dtype[:8]!r} of {len(part.shape)} dimensions, which cannot be")
        kind = np.dtype(part.dtype)
        last = first + kind.itemsize * prod(part.shape)
        if last > len(data) or part.name in arrays:
            raise ValueError(f"its array {part.name[:20]!r} is not all there, or there twice")
        planes = np.frombuffer(data[first:last], np.uint8).reshape(kind.itemsize, -1)
        array = np.frombuffer(np.ascontiguousarray(planes.T), kind).reshape(part.shape)
        arrays[part.name], first = array.astype(kind.newbyteorder("="), copy=False), last
    if first != len(data):
        raise ValueError(f"it has {len(data) - first} bytes that belong to no array")
    return arrays


def _by_significance(array: np.ndarray) -> bytes:
    """First the lowest byte of every number, then the next one of every number, and so on."""
    return np.frombuffer(array.tobytes(), np.uint8).reshape(-1, array.itemsize).T.tobytes()
