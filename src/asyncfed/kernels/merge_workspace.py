"""What a rule may use for a merge: so many threads, and room for the vectors that it compares.

The `step` of a rule has no arguments for what changes no result. Who calls it says here what there is; elsewhere a rule
has one thread, and room that it makes itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray


class MergeWorkspace:
    """Threads, and memory for one merge after another: asking the system for it anew takes longer than filling it.

    Args:
        threads: how many there are, 1 or more.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._room: NDArray[Any] = np.empty(0, np.uint8)

    def room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """An array of this shape, filled with anything; the next one takes its place."""
        size = prod(shape) * dtype.itemsize
        if self._room.size < size:
            self._room = np.empty(size, np.uint8)
        return self._room[:size].view(dtype).reshape(shape)


_workspace: ContextVar[MergeWorkspace | None] = ContextVar("merge_workspace", default=None)


@contextmanager
def merging_in(workspace: MergeWorkspace) -> Iterator[None]:
    """Let rules use it meanwhile."""
    before = _workspace.set(workspace)
    try:
        yield
    finally:
        _workspace.reset(before)


def merge_workspace() -> MergeWorkspace:
    """What may be used now: a new one with one thread, unless a run says otherwise."""
    return _workspace.get() or MergeWorkspace()


def merge_threads() -> int:
    """How many threads may be used now."""
    return merge_workspace().threads
