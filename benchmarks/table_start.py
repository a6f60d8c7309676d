"""A table's run up to its training, in a process of its own: `benchmarks.table_start CSV TARGET CLIENT_COLUMN OUT`."""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks.measure import Spent

BEGAN = perf_counter()


def start_run(table: str, target: str, client_column: str, out: str) -> None:
    """`asyncfed run` as it is typed, ended when the first model is to be trained; writes what it took to `out`."""
    from rich.progress import Progress

    from asyncfed.cli.app import app
    from asyncfed.problems.packed_problem import PackedProblem

    bar_after: list[Spent] = []
    start = Progress.start

    def start_bar(bar: Progress) -> None:
        bar_after.append(Spent(perf_counter() - BEGAN, process_time()))
        start(bar)

    def end(*_: Any, **__: Any) -> None:
        figures = {
            "cpu_seconds": process_time(),
            "wall_seconds": perf_counter() - BEGAN,
            "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
            "bar_after_seconds": bar_after[0].wall,
            "bar_after_cpu_seconds": bar_after[0].cpu,
        }
        Path(out).write_text(json.dumps(figures))
        os._exit(0)

    setattr(Progress, "start", start_bar)  # noqa: B010
    setattr(PackedProblem, "local_train_many", end)  # noqa: B010
    app(["run", table, "--target", target, "--client-column", client_column, "--out", f"{out}.sqlite"])


if __name__ == "__main__":
    start_run(*sys.argv[1:])
