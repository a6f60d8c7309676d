"""Results of a study that may be stopped: what has a line on disk is read, the rest is computed and written as it ends.

The order in which results are computed, and the number of processes, change nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from asyncfed.core.record import to_plain
from asyncfed.runs.process_pool import Pool
from asyncfed.runs.result_lines import append_line, decode, end_last_line, read_lines

T = TypeVar("T")

ADVICE = "Run the same command again: what was computed is kept. --workers 1 computes in this process, and says more."
"""What to do when a process of a study dies."""

Watcher: TypeAlias = Callable[[int, int, str], None]
"""Called with the number of results that are there, of all results, and what came last."""


class Computation(NamedTuple):
    """A result that is wanted.

    Args:
        key: a digest of all that it depends on.
        function: what computes it, a function of a module.
        arguments: of the function.
    """

    key: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class KeptResults(Generic[T]):
    """A file with a line for each result: `{"key": ..., FIELD: ...}`.

    Args:
        path: the file, which need not exist.
        kind: the record that a result is.
        field: what the result is called in a line.
    """

    def __init__(self, path: Path, kind: type[T], field: str = "result") -> None:
        self._path, self._kind, self._field = path, kind, field
        path.parent.mkdir(parents=True, exist_ok=True)
        end_last_line(path)
        self._lines = {str(line.get("key")): line.get(field) for line in read_lines(path)}

    def compute(self, wanted: Sequence[Computation], pool: Pool, finish: Callable[[T], None]) -> None:
        """Hand every result to `finish`, in whatever order: what is on disk at once, the others when they end."""
        jobs = {}
        for one in wanted:
            known = decode(self._lines.get(one.key), self._kind)
            if known is None:
                jobs[pool.submit(one.function, *one.arguments)] = one.key
            else:
                finish(known)
        for job in pool.finished(jobs):
            result = job.result()
            append_line(self._path, {"key": jobs[job], self._field: to_plain(result)})
            finish(result)
