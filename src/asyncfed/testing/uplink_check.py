"""Whether an uplink's messages are what it says they are, and whether it refuses others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from asyncfed.core.random import Stream, draw_key, purpose_key
from asyncfed.core.types import Uplink
from asyncfed.testing.array_check import (
    Arrays,
    bits_of,
    copy_arrays,
    expect_arrays,
    expect_vector,
    left_alone,
    through_a_file,
)
from asyncfed.testing.codec_check import check_constants
from asyncfed.testing.value_check import blame, check_part
from asyncfed.uplinks.chain import decode_one, encode_one, message_size
from asyncfed.uplinks.codec import Codec

SIZES = (1, 2, 17, 400)
"""Parameters of the models that are tried."""

CHANGES = 5
"""So many changes are sent one after another."""


def check_uplink(uplink: Uplink, seed: int = 0, sizes: Sequence[int] = SIZES) -> None:
    """Send changes of several sizes and types through an uplink, and refuse it unless its messages are as it says.

    It must be a frozen, registered value; leave memory, change and message alone; encode and decode the same to the
    same, to the last bit, also from a memory that went through a checkpoint; decode to the shape and type of the
    change; declare its true size; and have a memory if and only if it `remembers`. What it calls `residual` must be
    what it has not sent so far: all that was sent plus the residual is the sum of all changes. A memory that is
    `mirrored` must be the same at client and server, to the bit, after every message. Messages that are impossible must
    be refused with ValueError and nothing else. If it answers `contraction` and `variance`, messages drawn with many
    keys, for the last two sizes, must not contradict them: neither how far they are from the change, nor that their
    mean is the change (`asyncfed.uplinks.codec.Codec`).

    Args:
        uplink: what is checked.
        seed: of the changes.
        sizes: numbers of parameters that are tried, for an uplink that fits some models only.

    Raises:
        AssertionError: it says what is wrong and when it happened.
    """
    copy = check_part(uplink, "uplink", Uplink)
    for number, (size, dtype) in enumerate((size, dtype) for size in sizes for dtype in (np.float64, np.float32)):
        key = draw_key(purpose_key(seed, "check_uplink"), number, 0)
        with blame(f"changes of {size} {np.dtype(dtype)}"):
            _check_messages(uplink, copy, size, np.dtype(dtype), key)
    if isinstance(uplink, Codec):
        for size in sizes[-2:]:
            with blame(f"changes of {size} numbers"):
                check_constants(uplink, size, draw_key(purpose_key(seed, "check_uplink"), size, 1))
    assert uplink == copy, "the uplink changed while it was used; what it remembers belongs into its memory."


def _check_messages(uplink: Uplink, copy: Uplink, size: int, dtype: np.dtype[Any], key: int) -> None:
    memory = uplink.init(size, dtype)
    expect_arrays(memory, "the memory that init gives")
    assert uplink.remembers is bool(memory), (
        f"remembers is {uplink.remembers!r}, but init gives {sorted(memory) or 'no arrays'}; one follows the other."
    )
    names = sorted(memory)
    wanted, sent, is_exact, largest = np.zeros(size), np.zeros(size), True, 1.0
    for number, change in enumerate(_changes(size, dtype, Stream(key))):
        message, after = _encode(uplink, copy, memory, change, draw_key(key, 0, number))
        assert sorted(after) == names, f"encode leaves a memory of {sorted(after)}; init made one of {names}."
        before, memory, wanted = memory, after, wanted + change
        declared = uplink.size(size, dtype.itemsize)
        if message is None:
            assert declared is None, f"nothing is sent where size says {declared} bytes; size must say None."
            continue
        true = message_size(message)
        assert declared in (None, true), f"a message has {true} bytes; size says {declared}."
        decoded = _decode(uplink, copy, message, change, before, after)
        sent = sent + decoded
        is_exact &= _sums_are_exact(decoded) and _sums_are_exact(memory.get("residual", decoded))
        largest = max(largest, float(np.abs(decoded).max()), float(np.abs(memory.get("residual", decoded)).max()))
        for what, impossible in _impossible(message):
            _expect_refusal(uplink, impossible, change, before, what, must=declared is not None or "lacks" in what)
        _check_nan(uplink, message, change, before)
    if "residual" in memory:
        apart = float(np.abs(sent + memory["residual"] - wanted).max())
        largest = max(largest, float(np.abs(wanted).max()))
        allowed = 0.0 if is_exact else 100.0 * float(np.finfo(dtype).eps) * largest
        assert apart <= allowed, f"what was sent and the residual are {apart:.3g} apart from the sum of all changes."


def _sums_are_exact(numbers: np.ndarray) -> bool:
    """Whether these are multiples of 2**-10 below 2**12: sums of a few of them have no rounding, in float32 either."""
    scaled = numbers.astype(np.float64) * 2.0**10
    return bool(np.all((scaled == np.round(scaled)) & (np.abs(scaled) < 2.0**22)))


def _changes(size: int, dtype: np.dtype[Any], chance: Stream) -> Iterator[np.ndarray]:
    """Sixteenths, whose sums have no rounding; the last change but one is zero."""
    for number in range(CHANGES):
        sixteenths = [chance.below(257) - 128 for _ in range(size)]
        yield np.array(sixteenths, dtype) / dtype.type(16 if number != CHANGES - 2 else np.inf)


def _encode(uplink: Uplink, copy: Uplink, memory: Arrays, change: np.ndarray, key: int) -> tuple[Arrays | None, Arrays]:
    stored = through_a_file(copy_arrays(memory))
    start = np.linspace(-1.0, 1.0, change.size).astype(change.dtype)
    with left_alone({"the change": change, "the start": start, **memory}, "encode"):
        message, after = encode_one(uplink, memory, change, key, start)
    again, after_again = encode_one(copy, stored, change.copy(), key, start.copy())
    expect_arrays(after, "the memory that encode leaves")
    if message is not None:
        expect_arrays(message, "a message")
    same = (message is None and again is None) or (message and again and bits_of(message) == bits_of(again))
    assert same, "a stored memory, the same change and the same key give another message."
    assert bits_of(after) == bits_of(after_again), "encode leaves another memory, given the same."
    return message, after


def _decode(
    uplink: Uplink, copy: Uplink, message: Arrays, change: np.ndarray, before: Arrays, after: Arrays
) -> np.ndarray:
    with left_alone({**message, **{f"{name} before": array for name, array in before.items()}}, "decode"):
        decoded, mirror = decode_one(uplink, message, change.size, change.dtype, before)
    expect_vector(decoded, change.shape, change.dtype, "what decode gives")
    if getattr(uplink, "mirrored", False):
        assert bits_of(mirror) == bits_of(after), "after a message the memories of client and server differ."
    again, _ = decode_one(copy, copy_arrays(message), change.size, change.dtype, copy_arrays(before))
    assert decoded.tobytes() == again.tobytes(), "decode gives another change for the same message."
    return decoded


def _impossible(message: Arrays) -> Iterator[tuple[str, Arrays]]:
    """Messages that nobody can have meant, and what is wrong with each."""
    for name, array in message.items():
        yield f'that lacks "{name}"', {other: kept for other, kept in message.items() if other != name}
        longer = np.concatenate([np.atleast_1d(array), np.atleast_1d(array)[:1]], axis=0)
        other = np.dtype(np.int16 if array.dtype.kind == "f" else np.float64)
        precision = np.dtype({4: np.float64, 8: np.float32}.get(array.itemsize, np.float16))
        for what, changed in (
            (f'whose "{name}" is longer', longer),
            (f'whose "{name}" is empty', np.zeros((0, *array.shape[1:]), array.dtype)),
            (f'whose "{name}" has another shape', array[None]),
            (f'whose "{name}" holds {other}', array.astype(other)),
            (f'whose "{name}" holds {precision}', array.astype(precision)),
        ):
            if (changed.shape, changed.dtype) != (array.shape, array.dtype):
                yield what, {**message, name: changed}


def _expect_refusal(uplink: Uplink, message: Arrays, change: np.ndarray, before: Arrays, what: str, must: bool) -> None:
    """ValueError; where the size of messages is not fixed, a shorter or longer one may be a sound one too."""
    try:
        decoded, _ = decode_one(uplink, message, change.size, change.dtype, before)
    except ValueError:
        return
    except Exception as problem:
        raise AssertionError(
            f"decode raises {type(problem).__name__} for a message {what}; it must raise ValueError, since messages "
            "come from outside."
        ) from problem
    assert not must, f"decode accepts a message {what}; it must raise ValueError."
    expect_vector(decoded, change.shape, change.dtype, f"what decode gives for a message {what}")


def _check_nan(uplink: Uplink, message: Arrays, change: np.ndarray, before: Arrays) -> None:
    """A NaN is refused, or shows in the change, so that whoever checks all changes finds it."""
    for name, array in message.items():
        if array.dtype.kind == "f" and array.size:
            bad = array.copy()
            bad.flat[0] = np.nan
            try:
                decoded, _ = decode_one(uplink, {**message, name: bad}, change.size, change.dtype, before)
            except ValueError:
                continue
            assert not np.isfinite(decoded).all(), f'decode makes a finite change of a message with NaN in "{name}".'
