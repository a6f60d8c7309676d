"""Results on disk, a line each, of computations that take long and may be stopped.

Lines are only ever appended, each by a single write of whichever process computed it. A process that is killed leaves
whole lines behind it, or at most a piece of one at the end, which is ignored. What has a line is not computed again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from asyncfed.core.record import ValidationError, from_plain

T = TypeVar("T")


def append_line(path: Path, value: dict[str, Any]) -> None:
    """Add a line to a file, whole; several processes may do so at once."""
    line = (json.dumps(value, allow_nan=False, separators=(",", ":")) + "\n").encode()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file that are whole; none if there is no such file."""
    if not path.exists():
        return
    for line in path.read_bytes().split(b"\n"):
        try:
            value = json.loads(line) if line else None
        except ValueError:
            continue  # cut off when the process was killed
        if isinstance(value, dict):
            yield value


def end_last_line(path: Path) -> None:
    """Close a line that was cut off, so that the next one begins where a line begins."""
    if path.exists() and path.stat().st_size:
        with path.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")


def decode(plain: Any, kind: type[T]) -> T | None:
    """What a line holds; None if it holds nothing of this kind, and has to be computed anew."""
    if plain is None:
        return None
    try:
        return from_plain(plain, kind)
    except ValidationError:
        return None
