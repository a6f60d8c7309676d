"""The study as a whole: which cells there are, which are missing, and the processes that compute them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from asyncfed.attacks import with_liars
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Record, to_json
from asyncfed.problems.protocol import Problem
from asyncfed.robustness.attacks import ATTACKS
from asyncfed.robustness.defences import BASES, DEFENCES, NUM_CLIENTS
from asyncfed.robustness.measured_run import RunOutcome, measure_run
from asyncfed.robustness.problems import PROBLEMS, SPLITS
from asyncfed.robustness.scenarios import DELAYS, HONEST, Cell, Scenario, cell_experiment
from asyncfed.runs.chosen_names import choose_names
from asyncfed.runs.kept_results import ADVICE, Computation, KeptResults, Watcher
from asyncfed.runs.process_pool import open_pool
from asyncfed.runs.run_names import code_digest

FORMAT = 1
"""Goes up when what a line holds, or how a run is measured, is changed."""

DECIDING_FILES = (
    *("attacks", "presets/robust_defaults.py"),
    *(f"robustness/{name}.py" for name in ("attacks", "defences", "measured_run", "problems", "scenarios")),
)
"""What a run of the study depends on beside the code of all simulated runs."""

CELLS = "cells.jsonl"

SEEDS, QUICK_SEEDS, FIRST_SEED = 5, 2, 1
QUICK_PROBLEMS = ("regression",)
QUICK_SHARES = (0.3,)
QUICK_SPLITS = ("iid",)
QUICK_DELAYS = ("stragglers",)

KEPT_PROBLEMS = 64
"""Problems that a process keeps: all of a full study, three problems by two splits by up to ten seeds."""


class StudyPlan(Record):
    """What is computed.

    Args:
        cells: scenario by scenario, in each defence by defence: without liars, then attack by attack and share by
            share.
        seeds: the seeds of every cell.
        quick: whether it is the small share that continuous integration computes.
    """

    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    quick: bool


class CellResult(Record):
    """A cell, and the outcome of its run with each seed."""

    cell: Cell
    runs: tuple[RunOutcome, ...]


class StudyResults(Record):
    """A plan, the result of each of its cells in their order, and the digest of the code they were computed with."""

    plan: StudyPlan
    cells: tuple[CellResult, ...]
    code: str


def plan_study(
    problems: Sequence[str] | None = None,
    attacks: Sequence[str] | None = None,
    defences: Sequence[str] | None = None,
    shares: Sequence[float] | None = None,
    splits: Sequence[str] | None = None,
    delays: Sequence[str] | None = None,
    seeds: int | None = None,
    quick: bool = False,
) -> StudyPlan:
    """The plan for these parts of the study; what is None is all of it, or with `quick` a small share.

    Args:
        problems: names of `PROBLEMS`.
        attacks: names of `ATTACKS`.
        defences: names of `DEFENCES`; the undefended strategies that they are compared with are always added.
        shares: shares of the clients that lie, above 0 and below 0.5; nobody lying is always added.
        splits: names of `SPLITS`.
        delays: names of `DELAYS`.
        seeds: how many seeds, 1 or more.
        quick: the small share.

    Raises:
        ConfigError: there is no such part.
    """
    chosen_attacks = choose_names("study", "attack", attacks or ATTACKS, ATTACKS)
    chosen_defences = _with_bases(choose_names("study", "defence", defences or DEFENCES, DEFENCES))
    scenarios = [
        Scenario(problem, split, delay)
        for problem in choose_names("study", "problem", problems or (QUICK_PROBLEMS if quick else PROBLEMS), PROBLEMS)
        for split in choose_names("study", "split", splits or (QUICK_SPLITS if quick else SPLITS), SPLITS)
        for delay in choose_names("study", "delays", delays or (QUICK_DELAYS if quick else DELAYS), DELAYS)
    ]
    for share in shares or ():
        if not (0 < share < 0.5 and round(share * NUM_CLIENTS) >= 1):
            raise ConfigError(
                f"shares has {share:g}; with {NUM_CLIENTS} clients it must be from {1 / NUM_CLIENTS:g} to below 0.5."
            )
    count = (QUICK_SEEDS if quick else SEEDS) if seeds is None else seeds
    if count < 1:
        raise ConfigError(f"seeds is {count}; it must be at least 1.")
    cells = []
    for scenario in scenarios:
        own = PROBLEMS[scenario.problem].shares
        lying = sorted(set(shares or (QUICK_SHARES if quick else own)))
        for defence in chosen_defences:
            cells.append(Cell(scenario, defence, HONEST, 0.0))
            cells += [Cell(scenario, defence, attack, share) for attack in chosen_attacks for share in lying]
    return StudyPlan(tuple(cells), tuple(range(FIRST_SEED, FIRST_SEED + count)), quick)


def _with_bases(defences: Sequence[str]) -> list[str]:
    wanted = {*defences, *(DEFENCES[name].base for name in defences)}
    return [name for name in DEFENCES if name in wanted]


def study_digest() -> str:
    """The digest of the code that the study's runs depend on."""
    return code_digest(f"robustness {FORMAT}", DECIDING_FILES)


def run_study(plan: StudyPlan, folder: Path, workers: int, watch: Watcher | None = None) -> StudyResults:
    """Compute what is missing, in so many processes, and answer with everything.

    Args:
        plan: what is to be computed.
        folder: where results are kept.
        workers: how many processes; 1 computes in this one.
        watch: called after each cell.

    Returns:
        The results: the same, whatever the number of processes, and however often it was stopped and begun again.
    """
    code = study_digest()
    kept = KeptResults(folder / CELLS, CellResult)
    done: dict[Cell, CellResult] = {}

    def finish(result: CellResult) -> None:
        done[result.cell] = result
        if watch is not None:
            watch(len(done), len(plan.cells), result.cell.key)

    def wanted(cell: Cell) -> Computation:
        key = hashlib.sha256(f"{code} {plan.seeds} {to_json(cell)}".encode()).hexdigest()[:32]
        return Computation(key, compute_cell, (cell, plan.seeds))

    with open_pool(workers, ADVICE) as pool:
        kept.compute([wanted(cell) for cell in plan.cells], pool, finish)
    return StudyResults(plan, tuple(done[cell] for cell in plan.cells), code)


def compute_cell(cell: Cell, seeds: Sequence[int]) -> CellResult:
    """Run a cell with each seed."""
    return CellResult(cell, tuple(_run(cell, seed) for seed in seeds))


def _run(cell: Cell, seed: int) -> RunOutcome:
    settings = PROBLEMS[cell.scenario.problem]
    experiment = cell_experiment(cell, seed)
    honest = _honest_problem(cell.scenario.problem, cell.scenario.split, seed)
    if experiment.attack is UNSET:
        return measure_run(experiment, honest, _least(honest), (), settings.remaining)
    liars = experiment.attack.choose(NUM_CLIENTS, seed)
    problem = with_liars(honest, experiment.attack, seed)
    return measure_run(experiment, problem, _least(problem), liars, settings.remaining)


def _least(problem: Problem) -> float:
    """The objective of the optimum; 0 where it is not known."""
    optimum = problem.optimum()
    return 0.0 if optimum is None else problem.evaluate(optimum)["objective"]


@lru_cache(maxsize=KEPT_PROBLEMS)
def _honest_problem(problem: str, split: str, seed: int) -> Problem:
    """The problem of a seed, the same for all delays and defences; made once by each process."""
    cell = Cell(Scenario(problem, split, "equal"), BASES[0], HONEST, 0.0)
    return cell_experiment(cell, seed).problem()
