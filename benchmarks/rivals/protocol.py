"""How a rival is run and what it answers: `python -m benchmarks.rivals.NAME_workloads --data FOLDER`.

A rival's file has `run(task, updates, clock)`, which trains with that library, tells the clock of every merge, and
returns the trained module; the answer is one JSON object on standard output. Whatever the library prints goes to
standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks.rivals.task import WORKLOADS, Task, load

LONGEST_REASON = 300


class Clock:
    """Counts merged updates from the first merge on: what came before, set-up and first round, is not in the time."""

    def __init__(self) -> None:
        self._wall: list[float] = []
        self._cpu: list[float] = []
        self._counts: list[int] = []

    def merged(self, updates: int, at: float | None = None) -> None:
        """So many more updates are in the server's model now, or were at that time of `perf_counter`."""
        self._wall.append(perf_counter() if at is None else at)
        self._cpu.append(process_time())
        self._counts.append(updates)

    def figures(self, in_one_process: bool) -> dict[str, float]:
        """Updates and seconds; processor time as well where all of it is spent in this process."""
        if len(self._wall) < 2:
            raise RuntimeError(f"{len(self._wall)} merges were counted; a rate needs at least 2.")
        spent = {"updates": sum(self._counts[1:]), "seconds": self._wall[-1] - self._wall[0]}
        return {**spent, "cpu_seconds": self._cpu[-1] - self._cpu[0]} if in_one_process else spent


Run = Callable[[Task, int, Clock], Any]


def answer(
    package: str,
    updates: Mapping[str, int],
    run: Run,
    others: Sequence[str] = ("torch",),
    in_one_process: bool = True,
) -> None:
    """Run the workloads asked for and print the answer.

    Args:
        package: the library's name as pip knows it.
        updates: how many updates of each workload take some seconds with this library.
        run: see above.
        others: packages whose versions matter too.
        in_one_process: whether all the work is done in this process.
    """
    options = _options()
    stdout = _keep_stdout_for_the_answer()
    workloads = {}
    for name in options.only or WORKLOADS:
        try:
            count = max(2, round(options.share * updates[name]))
            clock, losses = _train(load(options.data, name), count, run)
            workloads[name] = {**clock.figures(in_one_process), **losses}
        except Exception as error:
            traceback.print_exc()
            workloads[name] = {"error": f"{type(error).__name__}: {error}"[:LONGEST_REASON]}
    versions = {each: version(each) for each in (package, *others)}
    with os.fdopen(stdout, "w") as out:
        print(json.dumps({"versions": versions, "workloads": workloads}), file=out)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--share", type=float, default=1.0, help="of the updates this library usually does")
    parser.add_argument("--only", choices=WORKLOADS, action="append")
    return parser.parse_args()


def _train(task: Task, updates: int, run: Run) -> tuple[Clock, dict[str, float]]:
    """Also the loss before and after: a library that does not train cannot be fast."""
    clock, before = Clock(), task.mean_loss(task.module())
    module = run(task, updates, clock)
    after = task.mean_loss(module)
    if not after < before:
        raise RuntimeError(f"the loss went from {before:.4g} to {after:.4g}, so nothing was learned")
    return clock, {"loss_before": before, "loss_after": after}


def _keep_stdout_for_the_answer() -> int:
    """Also for what child processes and compiled code print: the descriptor itself is moved."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept
