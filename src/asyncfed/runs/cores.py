"""How many cores there are to use."""

from __future__ import annotations

import os

from asyncfed.core.errors import ConfigError


def usable_cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """The number of threads to use: as given, at least 1, or one per core."""
    if threads is not None and threads < 1:
        raise ConfigError(f"threads is {threads}; it must be at least 1.")
    return threads or usable_cores()
