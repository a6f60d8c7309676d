"""What a live server does with a large model besides training: bytes written to disk and CPU time, for each update.

A million float32 parameters, real processes, next to nothing to train, a journal on disk. The model is sent and
received whole, in memory that server and clients share; the server checks, keeps and merges it. The CPU time is beside
that of copying the model in memory. What is put into the file by way of its memory counts as written.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import asyncfed as af
from asyncfed.live.session import LiveSession
from asyncfed.store.array_file import ArrayFile
from benchmarks.large_problem import LargeProblem
from benchmarks.outcome import Line, Outcome

MOST_WRITTEN, MOST_COPIES = 1.5, 5.0
WARM = 0.25
"""The share of the updates after which measuring begins: memory and files are then as large as they will be."""


class Meter:
    """Looks at the server at each of its commits, from a share of the updates on."""

    def __init__(self, first: int, num_bytes: int) -> None:
        self._first, self._num_bytes = first, num_bytes
        self._begun: tuple[int, float, int, int] | None = None
        self._last = (0, 0.0, 0, 0)

    def look(self, session: LiveSession) -> None:
        """Read the counters."""
        now = (session.state.updates, time.process_time(), *_written())
        if self._begun is None and now[0] >= self._first:
            self._begun = now
        self._last = now

    def result(self) -> dict[str, float]:
        """By update, and bytes by byte received."""
        assert self._begun is not None
        updates, cpu, written, dirtied = (after - before for after, before in zip(self._last, self._begun, strict=True))
        received = updates * self._num_bytes
        return {
            "updates": updates,
            "cpu_ms": 1e3 * cpu / updates,
            "written": written / received,
            "dirtied": dirtied / received,
        }


mapped_bytes = 0
"""Bytes of places of a file that were used as memory so far: the system does not count what is put there."""


def _written() -> tuple[int, int]:
    """Bytes written to files by this process, and bytes of pages that are to reach the disk.

    Neither counts what goes into a socket: that is sent by `send`.
    """
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["wchar"]) + mapped_bytes, int(counters["write_bytes"])


@contextmanager
def _counting_mapped() -> Iterator[None]:
    """Count the places of files that are used as memory meanwhile."""
    take = ArrayFile.take

    def counted(file: ArrayFile, length: int) -> memoryview | None:
        global mapped_bytes
        memory = take(file, length)
        mapped_bytes += 0 if memory is None else length
        return memory

    ArrayFile.take = counted  # type: ignore[method-assign]
    try:
        yield
    finally:
        ArrayFile.take = take  # type: ignore[method-assign]


def measure(params: int = 1_000_000, clients: int = 8, updates: int = 1_000, repeats: int = 3) -> Outcome:
    """The least of several runs for each of two strategies, and the copies that are made beside them."""
    numbers: dict[str, Any] = {"params": params, "clients": clients, "updates": updates, "runs": {}}
    lines = []
    work = af.Work(epochs=1, batch_size=1, learning_rate=0.5)
    strategies = {
        "FedAsync": af.strategies.FedAsync(concurrency=clients, work=work),
        "FedBuff, 4 a merge": af.strategies.FedBuff(concurrency=clients, buffer_size=4, work=work),
    }
    for label, strategy in strategies.items():
        runs = []
        for _ in range(repeats):
            copies = copy_ms(params, clients)
            runs.append({**_run(strategy, params, clients, updates), **copies, **parts_ms(params)})
        numbers["runs"][label] = runs
        best = min(runs, key=lambda run: run["cpu_ms"])
        written = max(max(run["written"], run["dirtied"], run["written_in_all"]) for run in runs)
        lines += [
            Line(
                f"live, {params:,} float32, {label}: bytes written",
                f"{written:.2f} per byte received",
                written,
                f"<= {MOST_WRITTEN}",
                written <= MOST_WRITTEN,
            ),
            Line(
                f"live, {params:,} float32, {label}: CPU / a copy",
                f"{best['cpu_ms']:.2f} ms/update, a copy {best['copy_ms']:.3f}",
                best["cpu_ms"] / best["copy_ms"],
                f"<= {MOST_COPIES:.0f}",
                best["cpu_ms"] <= MOST_COPIES * best["copy_ms"],
            ),
            Line(
                f"live, {params:,} float32, {label}: CPU / a copy not in cache",
                f"{best['cpu_ms']:.2f} ms/update, a copy {best['cold_copy_ms']:.3f}",
                best["cpu_ms"] / best["cold_copy_ms"],
                f"<= {MOST_COPIES:.0f}",
                best["cpu_ms"] <= MOST_COPIES * best["cold_copy_ms"],
            ),
        ]
    return Outcome(lines, numbers, _note(numbers))


def _note(numbers: dict[str, Any]) -> str:
    run = min((run for runs in numbers["runs"].values() for run in runs), key=lambda run: run["cpu_ms"])
    parts = {name: value for name, value in run.items() if name.startswith("part_")}
    return "What an update cannot do without, each alone, of memory that is not in cache, CPU ms: " + ", ".join(
        f"{name.removeprefix('part_')} {value:.3f}" for name, value in parts.items()
    )


def _run(strategy: Any, params: int, clients: int, updates: int) -> dict[str, float]:
    problem = LargeProblem(params, clients)
    experiment = af.Experiment(
        name="large live",
        num_clients=clients,
        strategy=strategy,
        budget=af.Budget(updates=updates),
        evaluation=af.Evaluation(every=0),
    )
    meter, commit = Meter(int(WARM * updates), 4 * params), LiveSession.commit

    def watched(session: LiveSession, now: float) -> Any:
        meter.look(session)
        return commit(session, now)

    LiveSession.commit = watched  # type: ignore[method-assign]
    before, _ = _written()
    try:
        with tempfile.TemporaryDirectory() as folder, _counting_mapped():
            run = af.run_live(experiment, problem=problem, out=Path(folder) / "large.sqlite")
            elapsed = float(run.evaluations["elapsed"][-1])
            run.journal.close()
    finally:
        LiveSession.commit = commit  # type: ignore[method-assign]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    whole = (_written()[0] - before) / (4 * params * updates)  # with the first files and the last checkpoint
    return {**meter.result(), "written_in_all": whole, "updates_per_second": updates / elapsed, "peak_gib": peak}


def copy_ms(params: int, clients: int) -> dict[str, float]:
    """CPU milliseconds of copying the model into memory that is there: the same again and again, which stays in the
    processor's caches, and one after another of as many models as the server has at hand."""
    source, target = np.ones(params, np.float32), np.ones(params, np.float32)
    models = np.ones((4 * clients, params), np.float32)
    order = iter(range(10**9))

    def next_copy() -> None:
        at = next(order) % (len(models) - 1)
        np.copyto(models[at], models[at + 1])

    return {"copy_ms": _least(lambda: np.copyto(target, source)), "cold_copy_ms": _least(next_copy, 200)}


def parts_ms(params: int) -> dict[str, float]:
    """CPU milliseconds of what the server does with each update, each alone, with models that are not in cache."""
    from asyncfed.kernels.merging import mix
    from asyncfed.kernels.square_sums import square_norm
    from asyncfed.live.private_copy import copy_model

    models = np.ones((32, params), np.float32)
    order = iter(range(10**9))

    def next_two() -> tuple[np.ndarray, np.ndarray]:
        at = 2 * next(order) % 30
        return models[at], models[at + 1]

    def receive() -> None:
        shared, start = next_two()
        copy_model(shared.view(np.uint8), start, None)

    def merge() -> None:
        present, payload = next_two()
        mix(present, 0.9, payload, 0.1, models[-1])

    return {
        "part_copy_check_and_measure": _least(receive, 200),
        "part_merge": _least(merge, 200),
        "part_norm_of_model": _least(lambda: square_norm(models[0]), 200),
    }


def _least(action: Callable[[], object], repeats: int = 60) -> float:
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        action()
        best = min(best, time.process_time() - began)
    return 1e3 * best
