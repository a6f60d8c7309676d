"""How far the reading of a table is, for whoever shows it: the data know no display."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

ReadingWatcher: TypeAlias = Callable[[str, int, int], None]
"""Called with the path of the table, the bytes read and the bytes there are."""

_watcher: ContextVar[ReadingWatcher | None] = ContextVar("asyncfed_reading", default=None)


@contextmanager
def watch_reading(watcher: ReadingWatcher) -> Iterator[None]:
    """Within it, tables that are read report how far they are.

    Args:
        watcher: called with the table's path, the bytes read so far and the bytes there are: at once when a file is
            opened, and then after every megabyte.

    Returns:
        A context manager.

    >>> with watch_reading(lambda path, done, total: print(f"{path}: {done} of {total} bytes")):
    ...     report_reading("shops.csv", 0, 1200)
    shops.csv: 0 of 1200 bytes
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def report_reading(path: str, done: int, total: int) -> None:
    """Tell whoever watches, if anybody does."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(path, done, total)
