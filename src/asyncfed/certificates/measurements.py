"""What the runs did, in the quantities that theorems bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from asyncfed.certificates.certifiable import Certifiable
from asyncfed.certificates.local_maps import bounded_maps, exact_maps
from asyncfed.certificates.settings import CHURN
from asyncfed.engine.trajectory import Trajectory, replay_trajectory
from asyncfed.runs.result import RecordedRun
from asyncfed.runs.verify import recorded_plan
from asyncfed.theory.bounds import client_drift_bound
from asyncfed.theory.conditions import step_curvature
from asyncfed.theory.constants import Constants
from asyncfed.theory.guarantee import Guarantee
from asyncfed.theory.guarantees import guarantees
from asyncfed.theory.mean_guarantees import CORRECTED
from asyncfed.theory.pathwise import Merged, TicketMap, along_deltas, along_latest, along_models
from asyncfed.theory.setting import Setting

MOST_MULTIPLICATIONS = 2e10
"""Work above which the exact maps of a run's tickets are not computed: about a minute on one core."""


@dataclass(frozen=True)
class MeasuredRun:
    """What one run did; all but the trajectory is given at the versions that were evaluated.

    Attributes:
        seed: the run's seed.
        verdict: how it ended: finished, diverged, starved or interrupted.
        trajectory: the distance to the optimum at every version, and what was merged; None if there is no optimum.
        versions: the versions that were evaluated.
        seconds: the run's clock at that moment.
        gap: F(x) − F*.
        averaged_gap: that of the averaged model a theorem bounds; NaN where there is none.
        drift: the client drift since the evaluation before; NaN if it was not measured.
    """

    seed: int
    verdict: str
    trajectory: Trajectory | None
    versions: np.ndarray
    seconds: np.ndarray
    gap: np.ndarray
    averaged_gap: np.ndarray
    drift: np.ndarray


@dataclass(frozen=True)
class PathBound:
    """A bound along one recorded path, which holds for that very run.

    Attributes:
        name: the theorem it follows from.
        distance: `distance[t]` ≥ |x_t − x*|, not squared.
        gap: `gap[t]` ≥ F(x_t) − F*; None where the objective is not smooth.
    """

    name: str
    distance: np.ndarray
    gap: np.ndarray | None


def averaging_ratio(setting: Setting, found: Constants) -> float | None:
    """The ratio of weights of the averaged model in the first theorem that bounds one; None if none does."""
    theorems = guarantees(setting, found, np.arange(1))
    return next((g.averaging for g in theorems if g.averaging is not None), None)


def follow_run(
    problem: Certifiable, found: Constants, ratio: float | None, run: RecordedRun, threads: int
) -> Trajectory | None:
    """The path of a recorded run, by replaying it; averaged models have weights of this `ratio`, if it is given."""
    if found.optimum is None:
        return None
    measured = set(run.evaluations["version"].astype(int).tolist())
    plan = recorded_plan(run.header, run.experiment, threads)
    return replay_trajectory(problem, plan, run.journal, found.optimum, ratio, measured.__contains__)


def measure_run(
    problem: Certifiable, found: Constants, run: RecordedRun, trajectory: Trajectory | None, threads: int
) -> MeasuredRun:
    """What a run that took this path did; without a path its distances and averaged models are unknown."""
    evaluations = run.evaluations
    versions = evaluations["version"].astype(int)
    floor = found.optimal_value if found.optimal_value is not None else np.nan
    averaged = np.full(len(versions), np.nan)
    if trajectory is not None:
        for place, version in enumerate(versions.tolist()):
            average = trajectory.averages.get(version)
            if average is not None:
                averaged[place] = float(problem.client_losses(average, threads).mean()) - floor
    drift = evaluations.get("client_drift", np.full(len(versions), np.nan))
    gap = evaluations["objective"] - floor
    seconds = evaluations["elapsed"]
    return MeasuredRun(run.experiment.seed, run.verdict, trajectory, versions, seconds, gap, averaged, drift)


def path_bound(
    problem: Certifiable, found: Constants, setting: Setting, run: MeasuredRun, threads: int
) -> PathBound | None:
    """P or M along the run's own path, whichever covers its rule; None where neither does."""
    path, form = run.trajectory, setting.rule.form
    changed = set(setting.outside) - {CHURN}  # what is left changes the local work itself
    if path is None or form is None or changed or found.optimum is None or found.start_distance is None:
        return None
    if form == "latest" and setting.outside:
        return None
    maps = _maps(problem, found, setting, path, threads)
    if maps is None:
        return None
    merges = [[Merged(maps[k.ticket], k.base_version, k.weight, k.client) for k in step.tickets] for step in path.steps]
    start = float(path.distances[0])
    if form == "deltas":
        name, distance = "P along the path", along_deltas(start, merges)
    elif form == "models":
        name, distance = "M along the path", along_models(start, [step.keep for step in path.steps], merges)
    else:
        name, distance = "M along the path", along_latest(start, merges, [step.shares for step in path.steps])
    smooth = found.objective_smoothness
    with np.errstate(over="ignore"):
        gap = None if smooth is None else 0.5 * smooth * distance**2
    return PathBound(name, distance, gap)


def _maps(
    problem: Certifiable, found: Constants, setting: Setting, path: Trajectory, threads: int
) -> dict[int, TicketMap] | None:
    tickets = [k for step in path.steps for k in step.tickets]
    assert found.optimum is not None
    if problem.model.loss in ("least_squares", "mse"):
        sizes = [int(problem.num_examples[k.client]) for k in tickets]
        each = zip(tickets, sizes, strict=True)
        rows = float(sum(k.work.count_steps(size) * min(k.work.batch_size, size) for k, size in each))
        if rows * 2 * problem.num_params * (problem.num_params + 1) > MOST_MULTIPLICATIONS:
            return None
        maps: list[TicketMap] | None = exact_maps(problem, tickets, found.optimum, threads)
    else:
        curvature = step_curvature(setting, found)
        maps = None if curvature is None else bounded_maps(problem, tickets, found.optimum, curvature, threads)
    return None if maps is None else {k.ticket: m for k, m in zip(tickets, maps, strict=True)}


def drift_bound(setting: Setting, found: Constants, runs: Sequence[MeasuredRun]) -> np.ndarray | None:
    """The paper's bound on the client drift of a round (Lemma 6), with the measured gap at the round's beginning.

    It is stated for the sum of deltas without staleness; elsewhere it is shown to be compared, not relied on.
    """
    if not runs or found.smoothness is None or not np.isfinite(found.smoothness) or found.optimum is None:
        return None
    shortest = min(len(run.gap) for run in runs)
    gaps = np.mean([run.gap[:shortest] for run in runs], axis=0)
    return np.asarray(
        client_drift_bound(
            smoothness=found.smoothness,
            gradient_variance=0.0 if setting.batches == "full" else found.gradient_variance_max or 0.0,
            optimum_heterogeneity=found.optimum_heterogeneity or 0.0,
            cohort_size=setting.round_size,
            local_steps=setting.most_steps,
            learning_rate=setting.learning_rate,
            objective_gap=np.maximum(gaps[:-1], 0.0),
            check_step=False,
        )
    )


def drift_note(theorems: Sequence[Guarantee]) -> str:
    """What keeps Lemma 6 from being a guarantee here: it needs what the corrected theorem needs."""
    theorem = next(g for g in theorems if g.name == CORRECTED)
    if theorem.applies:
        return "Lemma 6 holds here."
    reasons = [*theorem.obstacles[:2], theorem.obstacles[-1]]
    return f"Lemma 6 is no guarantee here: {'; '.join(dict.fromkeys(reasons))}."
