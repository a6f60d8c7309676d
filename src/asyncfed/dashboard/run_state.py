"""Whether a run is being written at the moment, and by whom."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from asyncfed.store.files import LOCK
from asyncfed.store.process_lock import MOST_BYTES, find_holder

LOCKED_SINCE = 6
"""The first schema version whose writers hold a lock."""

RECENT_SECONDS = 30.0
"""Where no lock can be looked at, a run whose file changed so recently counts as running."""

Signature = tuple[tuple[int, int, int], ...]


class RunState(NamedTuple):
    """`state` as pages show it, and who writes the run, if that is known."""

    state: str
    holder: dict[str, Any] | None


def file_signature(path: Path) -> Signature:
    """What changes whenever something is written to a run: number, size and time of its file and its log."""
    found = []
    for ending in ("", "-wal", "-journal"):
        with suppress(OSError):
            stat = path.with_name(path.name + ending).stat()
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def last_change(path: Path) -> float:
    """When the run's file or its log was last written, in seconds since 1970; 0 if there is none."""
    return max((changed / 1e9 for _, _, changed in file_signature(path)), default=0.0)


def find_state(path: Path, header: Mapping[str, Any], version: int) -> RunState:
    """How a run is: running if its header says interrupted and somebody writes it; else what the header says."""
    verdict = str(header.get("verdict", "interrupted"))
    if verdict != "interrupted":
        return RunState(verdict, None)
    lock = path.with_name(path.name + LOCK)
    try:
        words = find_holder(lock)
        is_known = version >= LOCKED_SINCE
    except OSError:  # on a file system that is read-only, or somebody else's
        words, is_known = None, False
    if words is not None:
        return RunState("running", _read_holder(lock))
    recent = not is_known and time.time() - last_change(path) < RECENT_SECONDS
    return RunState("running" if recent else "interrupted", None)


def kind_of_run(header: Mapping[str, Any]) -> str:
    """simulated, live, flower or ray."""
    live = header.get("live")
    if live is None:
        return "simulated"
    engine = live.get("engine") if isinstance(live, dict) else None
    kind = engine.get("kind") if isinstance(engine, dict) else None
    return str(kind) if kind in ("flower", "ray") else "live"


def _read_holder(lock: Path) -> dict[str, Any]:
    """What the lock's file says of its holder, as texts of limited length."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        try:
            known = json.loads(os.read(descriptor, MOST_BYTES))
        finally:
            os.close(descriptor)
        return {name: str(known.get(name, ""))[:300] for name in ("pid", "host", "command", "since")}
    except (OSError, ValueError, AttributeError):
        return {"pid": "", "host": "", "command": "", "since": ""}
