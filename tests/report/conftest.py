"""Hand-made runs and comparisons, so that reports are tested on numbers one can work out."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from asyncfed.analysis.comparison import Comparison, Outcome
from asyncfed.communication.entry import Entry, EntryRequest, Trial
from asyncfed.communication.measured_run import Point, RunOutcome
from asyncfed.communication.study import StudyPlan, StudyResults
from asyncfed.communication.summary import summarise
from asyncfed.report.figures.figure_data import FigureData, Panel, Series


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

    merge_info: dict[str, np.ndarray] = field(default_factory=dict)
    best: int = -1

    def __post_init__(self):
        self.header.setdefault("num_clients", len(self.merges))

    @property
    def kept(self):
        return self.best % len(self.evaluations["round"])

    def participation(self):
        return self.merges

    def participation_of_known(self):
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
        "skipped": 0 * ended,
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


def made_series(label, rate, **settings):
    rounds = np.arange(60.0)
    y = 0.04 + 400 * np.exp(-rate * rounds)
    low = y * 0.8 - 0.02  # reaches below zero, where a logarithmic axis has nothing to show
    return Series(
        label, tuple(rounds.tolist()), tuple(y.tolist()), tuple(low.tolist()), tuple((1.3 * y).tolist()), **settings
    )


@pytest.fixture(scope="session")
def made_figures():
    """Nine fractions and their mean; two readings of two strategies in two panels; bars, points, and gaps."""
    fractions = [made_series(f"{n}0 %", n / 20, group=f"{n}0 %") for n in range(1, 10)]
    mean = made_series("mean", 0.2, emphasis=True)
    readings = [made_series(name, 0.1 * len(of), group=of) for of in ("text", "scripts") for name in ("AFL", "sync")]
    gaps = Series("gaps", (0.0, 1.0, 2.0, 3.0), (3.0, None, 2.0, 1.0), (2.0, None, 1.5, 0.5), (4.0, None, 2.5, 1.5))
    bars = [Series(name, (0.0, 1.0), (3.0, 5.0), (2.0, 4.0), (4.0, 6.0), kind="bar") for name in ("AFL", "sync")]
    dots = Series("published", (0.0, 2.0), (3.0, 1.0), kind="points")
    return [
        FigureData(
            "fractions",
            "Loss by client fraction",
            'Bands hold 95 % & more, "quoted" <b>not bold</b>',
            (Panel("Loss", "round", "loss, MSE", (*fractions, mean), y_log=True, note="The noise floor is 0.04."),),
            "asyncfed reproduce --only fractions",
        ),
        FigureData(
            "readings",
            "Two readings",
            "",
            (
                Panel("Per round", "round", "loss, MSE", tuple(readings), y_log=True),
                Panel("In time", "virtual time, s", "loss, MSE", tuple(readings[:2]), x_log=True, y_log=True),
            ),
        ),
        FigureData(
            "others",
            "Bars, points and gaps",
            "",
            (Panel("Bars", "client", "updates", tuple(bars)), Panel("Points", "round", "loss", (dots, gaps))),
        ),
    ]


@pytest.fixture(scope="session")
def made_verdicts():
    return [
        {
            "id": "faster",
            "claim": "Higher fractions converge faster",
            "statistic": "rounds to 0.1, 90 % over 20 %",
            "number": 0.21345,
            "low": 0.19,
            "high": 0.24,
            "unit": "times",
            "verdict": "holds per round but not in time",
            "reason": "Per second they are alike <script>alert(1)</script>",
            "figure": "fractions",
            "reading": "text",
        },
        {
            "id": "sensitive",
            "claim": "SVM is more sensitive to delay",
            "statistic": None,
            "number": None,
            "low": None,
            "high": None,
            "unit": None,
            "verdict": "undecided",
            "reason": "The interval contains 1",
            "figure": None,
            "reading": None,
        },
    ]


def _run_to(target, cost, seed):
    """A made-up run whose loss falls to the target, or to just above it, at this cost in bytes."""
    points = tuple(
        Point(0.01 * step * seed, step * cost * seed, step * 4000, 5 * step, max(target, 0.8**step), None)
        for step in range(20)
    )
    verdict = "reached" if target <= 0.02 else "never"
    return RunOutcome(verdict, "", points, points[-1].left)


@pytest.fixture(scope="session")
def communication_study():
    """Made-up results of the communication study and their rows: two strategies, three codecs, two links and seeds."""
    entries = []
    for strategy in ("fedbuff", "afl"):
        for codec, target, cost in (("none", 0.02, 20000), ("top_k", 0.05, 200), ("top_k_ef", 0.02, 400)):
            request = EntryRequest("regression", strategy, codec, ("1_mbit", "10_mbit"), (1, 2))
            runs = tuple(_run_to(target, cost, seed) for seed in request.seeds)
            entries.append(Entry(request, (Trial(0.1, runs[0]),), 0.1, (runs, runs)))
    results = StudyResults(StudyPlan(tuple(entry.request for entry in entries), False), tuple(entries), "0" * 64)
    return results, summarise(results)
