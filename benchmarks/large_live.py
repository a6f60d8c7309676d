"""What a live server does with a large model besides training: bytes written to disk and CPU time, for each update.

A million float32 parameters, real processes, next to nothing to train, a journal on disk. The model is sent and
received whole; the server checks, keeps and merges it. The CPU time is beside that of copying the model in memory.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import asyncfed as af
from asyncfed.live.session import LiveSession
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


def _written() -> tuple[int, int]:
    """Bytes given to `write` by this process, and bytes of pages that are to reach the disk.

    Neither counts what goes into a socket: that is sent by `send`.
    """
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["wchar"]), int(counters["write_bytes"])


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
            ),
        ]
    return Outcome(lines, numbers, _note(numbers))


def _note(numbers: dict[str, Any]) -> str:
    run = min((run for runs in numbers["runs"].values() for run in runs), key=lambda run: run["cpu_ms"])
    parts = {name: value for name, value in run.items() if name.startswith("part_")}
    return "What an update cannot do without, each alone, CPU ms: " + ", ".join(
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
        with tempfile.TemporaryDirectory() as folder:
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
    """CPU milliseconds of what the server does with each update, each thing alone and from warm memory."""
    import os
    import socket

    from asyncfed.kernels.merging import mix
    from asyncfed.store.page_sums import page_sum
    from asyncfed.uplinks.norms import change_norm

    first, second, third = (np.full(params, value, np.float32) for value in (1.0, 2.0, 3.0))
    ours, theirs = socket.socketpair()
    data, room = first.data.cast("B"), second.data.cast("B")

    def transfer() -> None:
        """To the system and back: what sending one model and receiving another takes together."""
        done = 0
        for at in range(0, len(data), 65536):
            sent = ours.send(data[at : at + 65536])
            left = sent
            while left:
                got = theirs.recv_into(room[done : done + left])
                done, left = done + got, left - got

    found = {"part_send_and_receive": _least(transfer)}
    ours.close()
    theirs.close()
    with tempfile.TemporaryFile(buffering=0) as file:
        found["part_write"] = _least(lambda: os.pwrite(file.fileno(), data, 0))
    found["part_check_sum"] = _least(lambda: page_sum(data))
    found["part_norm"] = _least(lambda: change_norm(first, second))
    found["part_merge"] = _least(lambda: mix(first, 0.9, second, 0.1, third))
    found["part_norm_of_model"] = _least(lambda: first.dot(first))
    return found


def _least(action: Callable[[], object], repeats: int = 60) -> float:
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        action()
        best = min(best, time.process_time() - began)
    return 1e3 * best
