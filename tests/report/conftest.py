"""Hand-made runs and comparisons, so that reports are tested on numbers one can work out."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from asyncfed.compare import Comparison, Outcome


@dataclass
class MadeRun:
    evaluations: dict[str, np.ndarray]
    rounds: dict[str, np.ndarray]
    merges: np.ndarray
    verdict: str = "finished"
    reason: str = "all rounds are done"
    header: dict[str, Any] = field(
        default_factory=lambda: {
            "experiment": {"name": "made up", "seed": 4, "strategy": {"kind": "afl", "aggregate": "latest"}}
        }
    )

    def participation(self):
        return self.merges


def made_run(objective=(9.0, 3.0, 1.0), num_clients=4, **changes):
    steps = np.arange(len(objective))
    ended = steps[1:]
    evaluations = {
        "updates": 5 * steps,
        "version": 5 * steps,
        "round": steps,
        "elapsed": 2.0 * steps,
        "objective": np.array(objective, float),
        "pooled_loss": np.array(objective, float) * 1.1,
        "distance": np.array(objective, float) ** 0.5,
    }
    rounds = {
        "round": ended,
        "updates": 5 * ended,
        "staleness_mean": 1.5 * np.ones(len(ended)),
        "staleness_max": 3 * np.ones(len(ended), int),
        "bytes_down": 1000 * ended,
        "bytes_up": 800 * ended,
        "energy": 45.0 * ended,
        "lost": 0 * ended,
        "dropped": 0 * ended,
        "participants": 0 * ended + num_clients,
        "jain_index": np.ones(len(ended)),
    }
    return MadeRun(evaluations, rounds, np.arange(num_clients), **changes)


def outcome(label, seed, objective, seconds, verdict="finished"):
    run = made_run(objective)
    evaluations = {**run.evaluations, "elapsed": seconds * np.arange(len(objective), dtype=float)}
    return Outcome(label, seed, verdict, "", evaluations, run.rounds, run.merges, {})


@pytest.fixture
def make_run():
    return made_run


@pytest.fixture
def comparison():
    """fast needs a quarter and a ninth of slow's time; late misses the target with one seed; wild diverges."""
    runs = {
        "slow": {0: outcome("slow", 0, [9, 4, 1], 8.0), 1: outcome("slow", 1, [9, 4, 1], 18.0)},
        "fast": {0: outcome("fast", 0, [9, 2, 1], 2.0), 1: outcome("fast", 1, [9, 3, 1], 2.0)},
        "late": {0: outcome("late", 0, [9, 8, 1], 8.0), 1: outcome("late", 1, [9, 8, 7], 8.0)},
        "wild": {s: outcome("wild", s, [9, 1e9, np.nan], 1.0, "diverged") for s in (0, 1)},
    }
    return Comparison("made up", tuple(runs), (0, 1), runs, 1.5)
