"""A checkpoint as a run's file holds it: its state as a text, its small arrays as one .npz, its large ones apart.

The .npz lies in the checkpoint's row. If it is long, because there are many small arrays, such as what each of ten
thousand clients remembers, it lies with the large ones: SQLite holds no value of a gigabyte or more.
"""

from __future__ import annotations

import io
import json
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from asyncfed.core.record import to_json
from asyncfed.store.array_store import Dump, is_large

ARRAYS_SUM = "arrays_crc"
"""What a checkpoint's state, which has a check sum of its own, calls the check sum of its arrays."""

LONGEST_IN_ROW = 2**22
"""Bytes of an .npz that lies in the checkpoint's row."""

PACKED = ".npz"
"""The name, among the large arrays, of an .npz that is longer. No array of a checkpoint has it."""


class CheckpointRow(NamedTuple):
    """What is written of a checkpoint: a row of `checkpoints`, and arrays for the array store."""

    text: str
    text_sum: int
    packed: bytes
    large: Dump


def pack_checkpoint(state: dict[str, Any], arrays: Dump) -> CheckpointRow:
    """The checkpoint as it is written."""
    large = {name: array for name, array in arrays.items() if is_large(array)}
    small = {name: np.stack(a) if isinstance(a, list) else a for name, a in arrays.items() if name not in large}
    file = io.BytesIO()
    np.savez(file, **small)  # type: ignore[arg-type]
    packed = file.getvalue()
    text = to_json({**state, ARRAYS_SUM: crc32(packed)})
    if len(packed) > LONGEST_IN_ROW:
        large[PACKED], packed = np.frombuffer(packed, np.uint8), b""
    return CheckpointRow(text, crc32(text.encode()), packed, large)


def unpack_checkpoint(row: tuple[Any, ...], large: dict[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The state and the arrays of a row (seq, state, state_crc, arrays) and of what the array store holds.

    Raises:
        ValueError: they are not what was written; so do decoders, with errors of their own.
    """
    seq, text, text_sum, packed = row
    if crc32(str(text).encode()) != text_sum:
        raise ValueError("it does not agree with its check sum")
    state = dict(json.loads(text))
    packed = large.pop(PACKED, packed)
    expected = state.pop(ARRAYS_SUM, None)  # files of earlier versions have none
    if expected is not None and crc32(packed) != expected:
        raise ValueError("its vectors do not agree with their check sum")
    with np.load(io.BytesIO(packed), allow_pickle=False) as file:
        small = {name: file[name] for name in file.files}
    return {**state, "seq": seq}, {**small, **large}
