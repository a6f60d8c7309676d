"""The server of a soak, to be killed: `python -m benchmarks.soak.server FILE CLIENTS MERGES NOTES`."""

from __future__ import annotations

import sys
from pathlib import Path

import asyncfed as af
from benchmarks.soak.counting_problem import CountingProblem


def run(path: Path, clients: int, merges: int, notes: str) -> str:
    """Begin the run, or go on with it; how it ended."""
    problem = CountingProblem(clients, notes)
    done = af.resume(path, problem=problem) if path.exists() else _begin(path, clients, merges, problem)
    verdict = done.verdict
    done.journal.close()
    return verdict


def _begin(path: Path, clients: int, merges: int, problem: CountingProblem) -> af.Run:
    experiment = af.Experiment(
        name="soak",
        num_clients=clients,
        strategy=af.strategies.AsyncSGD(concurrency=clients, work=af.Work(epochs=1, batch_size=1, learning_rate=1.0)),
        budget=af.Budget(updates=merges),
        evaluation=af.Evaluation(every=1_000),
    )
    return af.run_live(experiment, problem=problem, out=path)


if __name__ == "__main__":
    verdict = run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    sys.exit(verdict not in ("finished", "interrupted"))
