"""How many updates a second a live server merges: real processes, next to nothing to train, a journal on disk."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import asyncfed as af
from asyncfed.live.engine_protocol import Engine
from asyncfed.strategies.schedules import ConstantRate
from benchmarks.outcome import Line, Outcome

GOAL = 500.0


def measure(clients: int = 8, updates: int = 8_000, repeats: int = 3) -> Outcome:
    """Merged updates per second of the run's own clock, which begins when all processes are there."""
    numbers: dict[str, Any] = {"clients": clients, "updates": updates, "updates_per_second": {}}
    lines = []
    for label, power_safe in (("survives kill -9", False), ("survives power loss", True)):
        rates = sorted(rate(trivial(clients, updates), af.LocalEngine(), power_safe) for _ in range(repeats))
        numbers["updates_per_second"][label] = rates
        what = f"live, {clients} processes, {label}"
        lines.append(Line(what, f"{rates[-1]:,.0f} updates/s", rates[-1] / GOAL, f">= {GOAL:.0f}/s", rates[-1] >= GOAL))
    return Outcome(lines, numbers)


def trivial(clients: int, updates: int) -> af.Experiment:
    """Clients with 32 rows of 10 features and one step of training each; nothing is measured but the last model."""
    work = af.Work(epochs=1, batch_size=32, learning_rate=0.001)
    return af.Experiment(
        name="live",
        num_clients=clients,
        data=af.data.PaperRegression(num_samples=32 * clients),
        strategy=af.strategies.AFL(concurrency=clients, aggregate="mixing", work=work, schedule=ConstantRate()),
        budget=af.Budget(updates=updates),
        evaluation=af.Evaluation(every=0),
    )


def rate(experiment: af.Experiment, engine: Engine, power_safe: bool = False) -> float:
    """Merged updates per second of a run's own clock."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "live.sqlite"
        run = af.run_live(experiment, engine=engine, out=path, power_safe=power_safe)
        elapsed, updates = float(run.evaluations["elapsed"][-1]), int(run.evaluations["updates"][-1])
        run.journal.close()
    return updates / elapsed
