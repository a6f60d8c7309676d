"""Advice from beginning to end: budget, search, finalists, recommendation; and the files it is kept in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from asyncfed.advice import virtual_budget
from asyncfed.advice.cached_trials import TrialCache, TrialRunner, Watcher, open_trial_pool, sha256_of_files
from asyncfed.advice.delay_source import charge_for_work, read_delays
from asyncfed.advice.finalists import FIRST_FRESH_SEED, MOST_FINALISTS, run_finalists
from asyncfed.advice.proposals import load_optuna
from asyncfed.advice.race import planned_race, race_all
from asyncfed.advice.recommendation import Recommendation, SearchPoint, settings_text
from asyncfed.advice.scoring import check_aim, cost_of_target
from asyncfed.advice.search import RUNGS, SearchPlan, SearchResult, planned_runs, search
from asyncfed.advice.search_space import search_space, work_text
from asyncfed.advice.trial_run import metric_of
from asyncfed.analysis.protocols import Axis
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Budget
from asyncfed.delays import DelayDescription, PerWork
from asyncfed.delays.files_read import files_read
from asyncfed.experiment import Experiment
from asyncfed.presets import strategy_like
from asyncfed.problems.protocol import Problem
from asyncfed.runs.cores import usable_cores
from asyncfed.runs.other_machines import OtherMachines

BASELINE = "fedavg"
STRATEGIES = ("fedavg", "fedasync", "fedbuff", "afl", "afl_delta_mean", "ringmaster", "fedcompass", "scaffold_async")
"""What is compared unless something else is asked for. Left out are strategies for other purposes: one that distrusts
clients, one client after another, and the published scripts."""

SEARCH_SEEDS = 4
FEWEST_SEEDS = 2
COST_AXES: tuple[Axis, ...] = ("elapsed", "bytes", "energy")
TRIALS = "trials"
"""The folder of the simulated runs."""


def recommend(
    experiment: Experiment,
    problem: Problem,
    out_dir: Path,
    *,
    objective: str = "time",
    strategies: Sequence[str] | None = None,
    delays: DelayDescription | Path | str | None = None,
    seeds: int = 8,
    workers: int | None = None,
    budget: float | None = None,
    progress: float = 0.95,
    watch: Watcher | None = None,
    cluster: OtherMachines | None = None,
    described: bool = False,
) -> Recommendation:
    """Search, compare and recommend; see `asyncfed.advise`. `described`: the experiment describes the problem."""
    described_by = experiment if described else None
    experiment.require_measurements("advice")
    aim = check_aim(objective)
    _check(seeds, workers, budget, progress)
    load_optuna()
    delays = experiment.delays if delays is None else read_delays(delays, experiment.strategy.work, out_dir)
    experiment = replace(experiment, delays=delays)
    charged = charge_for_work(experiment, problem)
    experiment, notes = replace(experiment, delays=charged), _notes(delays, charged)
    names = tuple(dict.fromkeys([*(STRATEGIES if strategies is None else strategies), BASELINE]))
    chosen = {name: strategy_like(name, experiment.strategy, "same") for name in names}
    for strategy in chosen.values():
        strategy.check(problem.num_clients)
    spaces = tuple(search_space(name, strategy, problem.num_examples) for name, strategy in chosen.items())
    planned = 1 + planned_race(SEARCH_SEEDS) + seeds * MOST_FINALISTS
    planned += planned_runs(len(spaces), max(len(space.choices) for space in spaces), SEARCH_SEEDS)
    cache = TrialCache(out_dir / TRIALS, f"{problem.fingerprint()} {sha256_of_files(files_read(charged))}")
    count = usable_cores() if workers is None else workers
    with open_trial_pool(count, problem, cluster, described_by) as pool:
        runner = TrialRunner(cache, pool, planned, watch)
        base = replace(experiment, strategy=chosen[BASELINE], stopping=None)
        metric = metric_of(problem)
        longest = virtual_budget.longest_budget(base, problem)
        [first] = runner.run([virtual_budget.pilot(base, longest)])
        if budget is None:
            budget = virtual_budget.choose_budget(first, metric, progress, longest)
        plan = SearchPlan(
            experiment=replace(base, budget=Budget(elapsed=budget)),
            spaces=spaces,
            baseline=BASELINE,
            aim=aim,
            metric=metric,
            progress=progress,
            budget=budget,
            seeds=tuple(range(experiment.seed, experiment.seed + SEARCH_SEEDS)),
            seed=experiment.seed,
        )
        result = search(plan, runner, [first])
        runner.reach(planned - planned_race(SEARCH_SEEDS) - seeds * MOST_FINALISTS)
        race_all(result, runner)
        runner.reach(planned - seeds * MOST_FINALISTS)
        fresh = range(experiment.seed + FIRST_FRESH_SEED, experiment.seed + FIRST_FRESH_SEED + seeds)
        finalists = run_finalists(result, chosen[BASELINE], fresh, runner)
        num_runs = 1 + sum(map(len, result.runs.values())) + seeds * len(finalists)
        runner.reach(planned)
    return Recommendation(
        experiment=experiment,
        aim=aim,
        target=result.target,
        budget=budget,
        finalists=finalists,
        baseline=BASELINE,
        seeds=tuple(fresh),
        points=_points(result),
        num_runs=num_runs,
        notes=notes,
        favourite=next(iter(finalists)),
    )


def _check(seeds: int, workers: int | None, budget: float | None, progress: float) -> None:
    if seeds < FEWEST_SEEDS:
        raise ConfigError(f"seeds is {seeds}; a confidence interval needs at least {FEWEST_SEEDS}.")
    if workers is not None and workers < 1:
        raise ConfigError(f"workers is {workers}; it must be at least 1.")
    if budget is not None and not 0 < budget < float("inf"):
        raise ConfigError(f"budget is {budget}; it must be a positive number of virtual seconds.")
    if not 0 < progress < 1:
        raise ConfigError(f"progress is {progress}; it must be above 0 and below 1, such as 0.95.")


def _notes(given: DelayDescription, charged: DelayDescription) -> tuple[str, ...]:
    if charged is given or not isinstance(charged, PerWork):
        return ()
    counted = work_text(charged.epochs, charged.steps)
    text = f"The delays do not depend on how much is trained, so they count for {counted}; "
    return (text + "other amounts of local work compute in proportion.",)


def _points(result: SearchResult) -> tuple[SearchPoint, ...]:
    """What complete settings that always reached the target cost, on average over the search's seeds."""
    plan, last, level = result.plan, len(RUNGS) - 1, result.target.level
    points = []
    for candidate in result.complete():
        runs = [result.runs[candidate][last, seed] for seed in plan.seeds]
        time, sent, energy = (float(np.mean([cost_of_target(run, level, axis) for run in runs])) for axis in COST_AXES)
        worst = [run.worst_test_loss for run in runs if run.worst_test_loss is not None]
        if np.isfinite(time):
            settings = settings_text(plan.space(candidate.name).describe(candidate.levels))
            mean = float(np.mean(worst)) if worst else None
            points.append(SearchPoint(candidate.name, settings, time, sent, energy, mean))
    return tuple(points)
