"""One strategy in one cell: tuned on the tuning seeds, then measured on fresh ones."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from asyncfed.analysis.statistics import geometric_interval
from asyncfed.arena.cells import Cell, base_experiment, cell_experiment, make_strategy
from asyncfed.arena.measured_run import RunOutcome, Targets, find_targets, run_to_targets, without_run
from asyncfed.arena.problems import PROBLEMS
from asyncfed.arena.results_store import RunStore
from asyncfed.arena.tuning import Trial, best_trial, tune
from asyncfed.core.errors import AsyncFedError
from asyncfed.core.record import Record
from asyncfed.problems.protocol import Problem

TUNING_SEEDS = (1000, 1001, 1002)
FIRST_SEED = 1
"""Fresh seeds are counted from it; they stay below the tuning seeds."""

MULTIPLE = 4.0
"""How many times the time that the baseline needs, when tuned, a run may take."""

KEPT_PROBLEMS = 96
"""Problems that a process keeps: all of a full arena, four problems by three splits by up to eight seeds."""


class Entry(Record):
    """What a strategy did in a cell.

    Args:
        cell: the cell.
        strategy: the algorithm's name.
        limit: virtual seconds that a run could take; None for the baseline's own trials, which set it.
        trials: on the tuning seeds, in their order.
        rate: the learning rate of the best trial.
        steps: its local steps.
        seeds: the fresh seeds.
        runs: the outcome of each.
    """

    cell: Cell
    strategy: str
    limit: float | None
    trials: tuple[Trial, ...]
    rate: float
    steps: int
    seeds: tuple[int, ...]
    runs: tuple[RunOutcome, ...]


class EntryRequest(Record):
    """An entry that is to be computed.

    Args:
        cell: the cell.
        strategy: the algorithm's name.
        limit: virtual seconds that a run may take; None: the entry is the baseline's, whose best trial sets it.
        num_trials: how many settings are tried.
        seeds: the fresh seeds.
        code: `arena_digest()`.
    """

    cell: Cell
    strategy: str
    limit: float | None
    num_trials: int
    seeds: tuple[int, ...]
    code: str

    @property
    def label(self) -> str:
        """What lines of its runs say they belong to."""
        return f"{self.cell.key}/{self.strategy}"


def compute_entry(request: EntryRequest, file: Path | None, known: dict[str, Any]) -> Entry:
    """Tune a strategy and measure it; runs that are known are not done again, the others are added to the file."""
    cell, name, store = request.cell, request.strategy, RunStore(file, request.label, request.code, known)

    def run(rate: float, steps: int, seed: int, limit: float | None) -> RunOutcome:
        return _stored_run(cell, name, rate, steps, seed, limit, store)

    def attempt(rate: float, steps: int, seed: int, limit: float | None) -> RunOutcome:
        return run(rate, steps, TUNING_SEEDS[seed], limit)

    trials = tune(PROBLEMS[cell.problem].rate, request.num_trials, len(TUNING_SEEDS), request.limit, attempt)
    best = best_trial(trials)
    limit = time_limit(trials) if request.limit is None else request.limit
    runs = tuple(run(best.rate, best.steps, seed, limit) for seed in request.seeds)
    return Entry(cell, name, limit, tuple(trials), best.rate, best.steps, request.seeds, runs)


def time_limit(trials: list[Trial]) -> float:
    """What a run may take, by the baseline's trials: a multiple of its geometric mean; or as long as it lasted."""
    best = best_trial(trials)
    times = [outcome.time for outcome in (best.outcome, *best.again) if outcome.time is not None]
    if times:
        return MULTIPLE * geometric_interval(times).mean
    return max([trial.outcome.elapsed for trial in trials if trial.outcome.elapsed > 0], default=1.0)


def _stored_run(
    cell: Cell, name: str, rate: float, steps: int, seed: int, limit: float | None, store: RunStore
) -> RunOutcome:
    try:
        experiment = cell_experiment(cell, make_strategy(name, cell.problem, rate, steps), seed, limit)
        key = store.key(experiment)
    except AsyncFedError as error:
        return without_run("refused", str(error))
    except Exception as error:  # of an algorithm's `make`: the others go on
        return without_run("failed", f"{type(error).__name__}: {error}")
    known = store.read(key)
    if known is not None:
        return known
    outcome = run_to_targets(experiment, *cell_problem(cell.problem, cell.split, seed))
    store.add(key, outcome)
    return outcome


@lru_cache(maxsize=KEPT_PROBLEMS)
def cell_problem(problem: str, split: str, seed: int) -> tuple[Problem, Targets]:
    """The problem of a seed, the same for all delays, and what is to be reached; made once by each process."""
    settings = PROBLEMS[problem]
    made = base_experiment(Cell(problem, "equal", split), seed).problem()
    return made, find_targets(made, seed, settings.remaining, settings.worst_remaining, settings.least_loss)
