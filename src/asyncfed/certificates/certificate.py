"""Certificate: the assumption checks, the theorems that apply, and what the runs did beside what was guaranteed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from asyncfed.certificates.best_clock import BestClock, best_clock_of
from asyncfed.certificates.certifiable import Certifiable, certifiable_problem, problem_constants
from asyncfed.certificates.client_influence import ClientInfluence, client_influence
from asyncfed.certificates.measurements import (
    MeasuredRun,
    PathBound,
    averaging_ratio,
    drift_bound,
    drift_note,
    follow_run,
    measure_run,
    path_bound,
)
from asyncfed.certificates.settings import planned_work, setting_of, with_observations
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace as with_changes
from asyncfed.data import PaperRegression
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.trajectory import PathObserver, Trajectory
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem
from asyncfed.runs.cores import usable_cores
from asyncfed.runs.result import RecordedRun
from asyncfed.runs.simulate import simulate
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.theory.assumption_checks import AssumptionCheck, check_assumptions
from asyncfed.theory.constants import Constants
from asyncfed.theory.guarantee import Guarantee
from asyncfed.theory.guarantees import admissible, guarantees
from asyncfed.theory.setting import Setting

ENOUGH_ERRORS = 3.0
"""Standard errors above a bound on an expectation at which a mean over runs is called a violation."""


@dataclass(frozen=True)
class Certificate:
    """What is guaranteed for an experiment beside what its runs did. Data only: drawing and printing are elsewhere.

    Attributes:
        name: the experiment's name.
        experiment: the experiment that is certified.
        setting: the run as the bounds see it, with what the runs showed.
        constants: L, μ, the optimum, gradient noise and heterogeneity of the problem.
        assumption_checks: one answer for each assumption of the theorems.
        guarantees: what each theorem says, whether it applies or not.
        runs: what each run did, in the quantities of the theorems.
        path: the bound along the first run's own path; None where there is none.
        drift_bound: Lemma 6's bound on the client drift of each round; None where it has no value.
        drift_note: whether Lemma 6 is a guarantee here, and if not, why.
        client_influence: how often each client is merged, predicted and counted, and what that does to the optimum.
        best_clock: what no method can beat, up to constants, beside the runs' own time; None where it is not known.
        best_clock_note: why it is not; empty if it is.
        violations: a sentence for each measurement outside a bound. There should be none, and one about P or M is a
            bug in AsyncFed.
    """

    name: str
    experiment: Experiment
    setting: Setting
    constants: Constants
    assumption_checks: tuple[AssumptionCheck, ...]
    guarantees: tuple[Guarantee, ...]
    runs: tuple[MeasuredRun, ...]
    path: PathBound | None
    drift_bound: np.ndarray | None
    drift_note: str
    client_influence: ClientInfluence
    best_clock: BestClock | None
    best_clock_note: str
    violations: tuple[str, ...]

    @property
    def versions(self) -> np.ndarray:
        """0, 1, … the last version of the model: where the curves of `guarantees` are given."""
        return np.arange((self.setting.num_versions or 0) + 1)

    @property
    def applying(self) -> tuple[Guarantee, ...]:
        """The theorems that cover the run as it is."""
        return tuple(g for g in self.guarantees if g.applies)

    @property
    def ok(self) -> bool:
        """True if nothing measured contradicts what is guaranteed."""
        return not self.violations

    @property
    def admissible(self) -> Guarantee | None:
        """The strongest theorem that covers the run, or would with a smaller step."""
        return admissible(self.guarantees)


def is_paper_regression(certificate: Certificate) -> bool:
    """Whether it is about the paper's regression, of whose own data more can be said."""
    return certificate.experiment.data == PaperRegression()


def constants_of(experiment: Experiment, problem: Certifiable) -> Constants:
    """The constants of an experiment's problem, for its batch size and from its own start."""
    start = problem.init(experiment.seed, how=experiment.init).astype(np.float64)
    work = planned_work(experiment.strategy, problem.num_examples, experiment.seed)
    return problem_constants(problem, work.batch_size, start)


def certify(
    experiment: Experiment,
    *,
    seeds: int = 5,
    problem: Problem | None = None,
    threads: int | None = None,
    watch: Callable[[int], None] | None = None,
) -> Certificate:
    """What is guaranteed for an experiment, beside what `seeds` runs of it do; see `asyncfed.certify`."""
    experiment.require_measurements("certifying convergence")
    if seeds < 0:
        raise ConfigError(f"seeds is {seeds}; it must be 0 (do not run) or more.")
    learnt = certifiable_problem(experiment.problem() if problem is None else problem)
    found = constants_of(experiment, learnt)
    setting = setting_of(experiment, learnt.num_examples, learnt.num_params)
    ratio = averaging_ratio(setting, found)
    runs: list[tuple[RecordedRun, Trajectory | None]] = []
    for number in range(seeds):
        repeated = with_changes(
            experiment, seed=experiment.seed + number, evaluation=Evaluation(drift=found.optimum is not None)
        )
        # Observed while it runs: its path would otherwise have to be replayed.
        observer = None if found.optimum is None else PathObserver(repeated.seed, found.optimum, ratio)
        run = simulate(repeated, problem=learnt, threads=threads, observer=observer)
        runs.append((run, None if observer is None else observer.trajectory(run.params)))
        if watch is not None:
            watch(number + 1)
    return _certificate(experiment, learnt, setting, found, runs, threads)


def certificate_of(run: RecordedRun, threads: int | None = None) -> Certificate:
    """The certificate of one run, from its journal and its own problem.

    Bounds on expectations may be exceeded by a single run.

    Args:
        run: a run, finished or not; one made with `problem=` must have that problem: `af.load(path, problem=...)`.
        threads: how many threads compute (default: all cores); changes the speed and nothing else.

    Raises:
        JournalError: the run was made on data that its experiment does not describe, and `run` does not have them.
        ConfigError: the problem is neither a linear model nor a softmax.
    """
    experiment, problem = run.experiment, problem_of(run)
    found, setting = constants_of(experiment, problem), setting_of(experiment, problem.num_examples, problem.num_params)
    path = follow_run(problem, found, averaging_ratio(setting, found), run, threads or usable_cores())
    return _certificate(experiment, problem, setting, found, [(run, path)], threads)


def problem_of(run: RecordedRun) -> Certifiable:
    """The problem that a run learnt, which need not be the one its experiment describes.

    A run that was given a wrapper of the described problem, such as `Workers`, is about the problem inside.
    """
    given = run.problem
    if not isinstance(given, Certifiable):
        described = run.experiment.problem()
        if described.fingerprint() == given.fingerprint():
            return certifiable_problem(described)
    return certifiable_problem(given)


def with_theory_rate(
    experiment: Experiment, problem: Problem | None = None, constants: Constants | None = None
) -> tuple[Experiment, Guarantee]:
    """The experiment at the constant rate a theorem that covers its rule advises, and that theorem.

    `problem` is what the experiment describes and `constants` are its own, if they are known already.
    """
    strategy = experiment.strategy
    steady = with_changes(experiment, strategy=with_changes(strategy, schedule=ConstantRate()))
    learnt = certifiable_problem(steady.problem() if problem is None else problem)
    setting = setting_of(steady, learnt.num_examples, learnt.num_params)
    found = guarantees(setting, constants_of(steady, learnt) if constants is None else constants, np.arange(1))
    best = admissible(found)
    if best is None or best.advised_rate is None:
        reasons = ". ".join(f"{g.name}: {g.missing[0]}" for g in found if g.name in ("R*", "R-conv", "P", "M"))
        raise ConfigError(
            f"No theorem covers this experiment at any learning rate. {reasons}. Change what is missing, or give a "
            "learning rate yourself."
        )
    work = with_changes(strategy.work, learning_rate=best.advised_rate)
    return with_changes(steady, strategy=with_changes(steady.strategy, work=work)), best


def _certificate(
    experiment: Experiment,
    problem: Certifiable,
    setting: Setting,
    found: Constants,
    runs: Sequence[tuple[RecordedRun, Trajectory | None]],
    threads: int | None,
) -> Certificate:
    cores = threads or usable_cores()
    paths = [measure_run(problem, found, run, trajectory, cores) for run, trajectory in runs]
    if runs:
        lossless = all(not any(run.rounds[name].any() for name in ("lost", "dropped", "skipped")) for run, _ in runs)
        followed = [path.trajectory for path in paths if path.trajectory is not None]
        setting = with_observations(setting, followed, lossless)
        # Bounds grow with the start's distance, so the largest over the runs makes them hold for each.
        found = replace(found, start_distance=max((float(t.distances[0]) for t in followed), default=None))
    versions = np.arange((setting.num_versions or 0) + 1)
    theorems = guarantees(setting, found, versions)
    along = path_bound(problem, found, setting, paths[0], cores) if paths else None
    clock, clock_note = best_clock_of(experiment, problem, found, paths)
    return Certificate(
        name=experiment.name,
        experiment=experiment,
        setting=setting,
        constants=found,
        assumption_checks=check_assumptions(setting, found),
        guarantees=theorems,
        runs=tuple(paths),
        path=along,
        drift_bound=drift_bound(setting, found, paths),
        drift_note=drift_note(theorems),
        client_influence=client_influence(experiment, problem, [run for run, _ in runs]),
        best_clock=clock,
        best_clock_note=clock_note,
        violations=tuple(_violations(problem, found, theorems, paths, along)),
    )


def _violations(
    problem: Certifiable,
    found: Constants,
    theorems: Sequence[Guarantee],
    runs: Sequence[MeasuredRun],
    along: PathBound | None,
) -> list[str]:
    """What must not happen: a run outside P or M, or a mean over runs clearly outside a bound on expectations."""
    paths = [(run, run.trajectory.distances) for run in runs if run.trajectory is not None]
    if not paths or found.optimum is None:
        return []
    rounding, relative = (1e-10, 1e-9) if problem.dtype == np.float64 else (1e-4, 1e-3)
    scale = 1.0 + (found.start_distance or 0.0) + float(np.linalg.norm(found.optimum))
    slack = Slack(rounding * scale, relative)
    said = []
    for g in theorems:
        if g.applies and g.distance is not None and g.covers == "every run":
            said += [_outside(g.name, run.seed, d, g.distance, slack) for run, d in paths]
        elif g.applies and g.distance is not None and len(paths) > 1:
            said.append(_mean_outside(g, [d for _, d in paths], slack))
    if along is not None:
        said.append(_outside(along.name, paths[0][0].seed, paths[0][1], along.distance, slack))
    return [sentence for sentence in said if sentence]


class Slack(NamedTuple):
    """What rounding may add to a distance: `absolute`, and `relative` times the bound."""

    absolute: float
    relative: float

    def above(self, bound: np.ndarray) -> np.ndarray:
        """The largest measured distance that does not contradict this bound."""
        return bound * (1.0 + self.relative) + self.absolute


def _outside(name: str, seed: int, distances: np.ndarray, bound: np.ndarray, slack: Slack) -> str:
    above = distances - slack.above(bound[: len(distances)])
    if not (above > 0).any():
        return ""
    version = int(above.argmax())
    return (
        f"{name} was VIOLATED by the run with seed {seed}: at version {version} the distance to the optimum is "
        f"{distances[version]:.6g}, the bound {bound[version]:.6g}. Path-wise bounds hold for every run, so this is a "
        "bug in AsyncFed; please report it with the experiment."
    )


def _mean_outside(g: Guarantee, paths: Sequence[np.ndarray], slack: Slack) -> str:
    length = min(map(len, paths))
    squares = np.array([d[:length] ** 2 for d in paths])
    assert g.distance is not None
    error = squares.std(axis=0, ddof=1) / np.sqrt(len(paths))
    above = squares.mean(axis=0) - ENOUGH_ERRORS * error - slack.above(g.distance[:length]) ** 2
    if not (above > 0).any():
        return ""
    version = int(above.argmax())
    return (
        f"{g.name} is exceeded beyond sampling error at version {version}: the mean squared distance over {len(paths)} "
        f"runs is {squares.mean(axis=0)[version]:.6g}, the bound {g.distance[version] ** 2:.6g}."
    )
