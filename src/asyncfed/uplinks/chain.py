"""Several uplinks one after another, as one: what a client sends, what the server makes of it, and how large it is.

Each uplink sees what the server would have made of the message of the one before. Only the message of the last one is
sent, so the server decodes it with the last one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import draw_key
from asyncfed.core.record import UnsetType
from asyncfed.core.types import Uplink
from asyncfed.registry import declare_part
from asyncfed.uplinks.noise import adds_noise

declare_part("uplink", Uplink)

Arrays: TypeAlias = dict[str, np.ndarray]

NOTHING: Arrays = {}

SKIPPED_BYTES = 1
"""What a client sends that has nothing worth sending."""


def check_memoryless(field: str, codec: Uplink) -> None:
    """Refuse a codec with a memory of its own, or one that cannot do without the model that a training began with."""
    if adds_noise(codec):
        raise ConfigError(
            f"{field} is {type(codec).__name__}, which adds noise. What is left out would be noise too, and taken back "
            "with the next change: nothing would be protected. Add noise after it, as the next of several uplinks."
        )
    if codec.remembers or getattr(codec, "needs_start", False):
        raise ConfigError(
            f"{field} is {type(codec).__name__}, which has a memory of its own or needs the start of a training. Use "
            "one without, such as TopK."
        )


def init_memory(uplinks: Sequence[Uplink], num_params: int, dtype: np.dtype[Any]) -> Arrays:
    """The memory of a client that has done nothing yet: `POSITION/NAME` for every array of every uplink."""
    return {
        f"{position}/{name}": array
        for position, uplink in enumerate(uplinks)
        for name, array in uplink.init(num_params, dtype).items()
    }


def encode_change(
    uplinks: Sequence[Uplink],
    memory: Arrays,
    change: np.ndarray,
    key: int,
    start: np.ndarray,
    noise_key: Callable[[], int] | None = None,
) -> tuple[Arrays | None, Arrays]:
    """The message that is sent, None if nothing is worth sending, and the memory after it.

    A message without arrays counts as none.

    Args:
        uplinks: one or more.
        memory: what `init_memory` or the last call gave; it is left as it was.
        change: what the training changed; it is left as it was.
        key: what all draws are made from.
        start: the model that the training began with; it is left as it was.
        noise_key: draws another key for each uplink that adds noise of the client's own: in live runs, where the server
            knows `key`.
    """
    after, message, own = dict(memory), None, NOTHING
    for position, uplink in enumerate(uplinks):
        if message is not None:
            change, _ = decode_one(uplinks[position - 1], message, change.size, change.dtype, own)
        prefix = f"{position}/"
        own = {name.removeprefix(prefix): array for name, array in memory.items() if name.startswith(prefix)}
        own_key = draw_key(key, position, 0) if noise_key is None or not adds_noise(uplink) else noise_key()
        message, own_after = encode_one(uplink, own, change, own_key, start)
        after.update({prefix + name: array for name, array in own_after.items()})
        if message is None:
            break
    return message or None, after


def encode_one(
    uplink: Uplink, memory: Arrays, change: np.ndarray, key: int, start: np.ndarray
) -> tuple[Arrays | None, Arrays]:
    """`encode` of one uplink, which is given the start if its class says that it `needs_start`."""
    encode: Any = uplink.encode
    more = (start,) if getattr(uplink, "needs_start", False) else ()
    message, after = encode(memory, change, key, *more)
    return message, after


def decode_one(
    uplink: Uplink, message: Arrays, num_params: int, dtype: np.dtype[Any], memory: Arrays
) -> tuple[np.ndarray, Arrays]:
    """`decode` of one uplink, and the memory after it, if its class says that it is `mirrored`; else none."""
    decode: Any = uplink.decode
    if getattr(uplink, "mirrored", False):
        change, after = decode(message, num_params, dtype, memory)
        return change, after
    return decode(message, num_params, dtype), NOTHING


def init_mirror(uplinks: Sequence[Uplink] | UnsetType, num_params: int, dtype: np.dtype[Any]) -> Arrays:
    """What the server keeps of the memory of a client that has done nothing yet; empty if it keeps nothing.

    Only the last uplink's messages reach the server, so it keeps the memory of that one, if it is mirrored.
    """
    if isinstance(uplinks, UnsetType) or not getattr(uplinks[-1], "mirrored", False):
        return NOTHING
    return uplinks[-1].init(num_params, dtype)


def decode_message(
    uplinks: Sequence[Uplink],
    message: Arrays | None,
    num_params: int,
    dtype: np.dtype[Any],
    mirror: Arrays = NOTHING,
) -> tuple[np.ndarray, Arrays]:
    """The change that the server sees, zero if nothing was sent, and what it keeps of the client's memory after it.

    Args:
        uplinks: one or more.
        message: what was sent; None if nothing was.
        num_params: entries of the change.
        dtype: their type.
        mirror: what the server keeps of the memory that the client used.

    Raises:
        ValueError: the message is impossible.
    """
    if message is None:
        return np.zeros(num_params, dtype), mirror
    decoded, after = decode_one(uplinks[-1], message, num_params, dtype, mirror)
    change = np.asarray(decoded)
    if change.shape != (num_params,) or change.dtype != dtype:
        raise ValueError(
            f"it decodes to {change.dtype} numbers of shape {change.shape}; {(num_params,)} of {dtype} are due"
        )
    return change, after


def apply_difference(downlink: Uplink, reference: np.ndarray, message: Arrays) -> np.ndarray:
    """The model that a difference leads to: the one line that server and client have in common, to the last bit."""
    if not message:
        return reference
    start: np.ndarray = reference + downlink.decode(message, reference.size, reference.dtype)
    return start


def take(message: Arrays, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """An array of a message. Raises ValueError if it is missing, or not of this shape and type."""
    array = message.get(name)
    if not isinstance(array, np.ndarray):
        raise ValueError(f'it has no array "{name}"')
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f'"{name}" holds {array.dtype} of shape {array.shape}; {dtype} of shape {shape} is due')
    return array


def declared_size(uplinks: Sequence[Uplink], num_params: int, itemsize: int) -> int | None:
    """The bytes of a message, as far as they are known before training."""
    if any(uplink.size(num_params, itemsize) is None for uplink in uplinks):
        return None
    return uplinks[-1].size(num_params, itemsize)


def message_size(message: Arrays | None) -> int:
    """The bytes of the arrays in a message; what wraps them is not counted, nor is it for models.

    Of a message that is not sent, the byte that says so.
    """
    return SKIPPED_BYTES if not message else sum(array.nbytes for array in message.values())
