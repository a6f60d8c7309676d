"""A week of a large model, its first minutes: whether disk and memory of a live server stop growing.

A model of 100 MB, 8 clients at work, FedBuff with 4 updates a merge, measured every round: after the first few merges
the files beside the run and the memory of the server must stay where they are, whatever comes.
"""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from statistics import median
from typing import Any

import asyncfed as af
from benchmarks.large_problem import LargeProblem
from benchmarks.outcome import Line, Outcome
from benchmarks.soak.process_memory import private_bytes

MOST_GROWTH = 1.05


class _Looks:
    """Looks at the file and the memory of this process from a thread, also while something is being written."""

    def __init__(self, path: Path, seconds: float) -> None:
        self._path, self._seconds = path, seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.disk: list[int] = []
        self.memory: list[int] = []

    def __enter__(self) -> _Looks:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(self._seconds):
            parts = self._path.parent.glob(self._path.name + "*")
            self.disk.append(sum(part.stat().st_blocks * 512 for part in parts if part.exists()))
            self.memory.append(private_bytes(os.getpid()))


def measure(params: int = 25_000_000, clients: int = 8, updates: int = 600, look_seconds: float = 0.5) -> Outcome:
    """The largest values of the second and of the last fifth of one run."""
    problem = LargeProblem(params, clients)
    work = af.Work(epochs=1, batch_size=1, learning_rate=0.5)
    experiment = af.Experiment(
        name="long live",
        num_clients=clients,
        strategy=af.strategies.FedBuff(concurrency=clients, buffer_size=4, work=work),
        budget=af.Budget(updates=updates),
        evaluation=af.Evaluation(every=5),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.sqlite"
        with _Looks(path, look_seconds) as looks:
            run = af.run_live(experiment, problem=problem, out=path)
        elapsed = float(run.evaluations["elapsed"][-1])
        run.journal.close()
        at_rest = path.stat().st_size
    size = 4 * params
    lines: list[Line] = []
    numbers: dict[str, Any] = {"params": params, "updates": updates, "elapsed": elapsed, "file_at_rest": at_rest}
    for what, values in (("disk", looks.disk), ("server memory", looks.memory)):
        early, late = _fifth(values, 1), _fifth(values, 4)
        numbers[what] = {"early": early, "late": late, "largest": max(values), "looks": len(values)}
        lines.append(
            Line(
                f"live, a model of {size / 1e6:.0f} MB, {clients} in flight: {what}",
                f"{max(values) / size:.1f} models at most, {median(values) / size:.1f} in the middle",
                late / early,
                f"<= {MOST_GROWTH}",
                late <= MOST_GROWTH * early,
            )
        )
    return Outcome(
        lines, numbers, f"{updates / elapsed:.1f} updates/s; the finished file has {at_rest / size:.1f} models."
    )


def _fifth(values: list[int], which: int) -> int:
    """The largest of the second fifth (1) or of the last (4)."""
    step = max(len(values) // 5, 1)
    return max(values[which * step : (which + 1) * step])
