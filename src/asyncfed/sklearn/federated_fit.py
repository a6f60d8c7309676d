"""Fitting to the pooled optimum, asynchronously and to any accuracy.

The default strategy keeps every client's latest model and averages them (AFL `latest`), and a ticket is one step over
all rows of its client: x = Σ_c a_c (x_τc − γ ∇f_c(x_τc)), Σ a_c = 1. It comes to rest where the mean of the
gradients is zero and nowhere else: at the pooled optimum, however different the clients are and however stale their
models. It gets there for γ up to 2 / (μ + L) if each f_c is L-smooth and μ-strongly convex (Mishchenko, Iutzeler,
Malick, Amini, "A delay-tolerant proximal-gradient algorithm for distributed learning", ICML 2018). Here γ is below
2 / max_c L_c, and a client alone need not be strongly convex: so each fit measures how far it came, and says so.

How fast depends on the condition of the problem, so a fit is made of stages, each a run of its own. Before a stage the
clients send the curvature of their losses at the model reached, a matrix a client, and the server chooses coordinates
in which the mean of them is the identity. The first stage takes the largest curvature that the loss can have, where
every step is safe; the following ones take more and more of the curvature where they are, and a stage that made
matters worse is undone and tried again more carefully. Least squares need a single stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from asyncfed.api import Run, run
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.delays import DelayDescription
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.stopping import Stopping
from asyncfed.experiment import Experiment
from asyncfed.presets.named_delays import delays_named
from asyncfed.presets.named_strategies import strategy_named
from asyncfed.sklearn.coordinates import Coordinates, CurvatureCoordinates, ScaledCoordinates
from asyncfed.sklearn.site_rows import Weighting
from asyncfed.sklearn.stage_problem import SiteObjective, StageProblem
from asyncfed.strategies import AFL, FedAvg
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.schedules import ConstantRate

Array = NDArray[Any]

_MOST_PARAMS = 1500
"""Params of a block of the curvature above which only its diagonal is used."""
_STAGE_ROUNDS = 100
_MOST_STAGE_ROUNDS = 1000
_PATIENCE = 200
"""Rounds without a smaller gradient after which a stage has come as far as it will."""
_STAGE_GAIN = 0.1
"""A stage ends when its gradient is so much of what it was, or less."""
_LOOSER = 0.1
_SAFEST = 1.0
_ROUNDING = 1e-12
_SYNCHRONOUS = ("sync", "fedavg")
_REACH = 1.5
"""How much of 1 / L_c a client's step is under "afl"; it has to be below 2."""
_MARGIN = 0.3
"""Stages aim at this share of the tolerance, because the next one measures in other coordinates."""


@dataclass(frozen=True, eq=False)
class FitSettings:
    """How a fit is made.

    - `strategy`: a strategy, or its name.
    - `delays`: how long work takes, or the name of ready-made delays.
    - `seed`: of everything random, 0 or more.
    - `max_rounds`: over all stages, 1 or more.
    - `tol`: above 0, see `FitResult.optimality`.
    - `weighting`: "rows" or "clients", as in the objective.
    - `name`: what the runs are called.
    """

    strategy: str | Strategy
    delays: str | DelayDescription
    seed: int
    max_rounds: int
    tol: float
    weighting: Weighting
    name: str


@dataclass(frozen=True, eq=False)
class FitResult:
    """A fitted model (K · p,), and how it came about.

    `optimality` is √(gᵀ H⁻¹ g) / √(wᵀ H w) with gradient g and Hessian H of the objective at the model w: how far it is
    from the optimum, relative to its own length, if H were the same all the way. Where H would be too large, its
    diagonal is taken.
    """

    model: Array
    optimality: float
    converged: bool
    rounds: int
    runs: tuple[Run, ...]


def fit_federated(objective: SiteObjective, settings: FitSettings) -> FitResult:
    """Minimise an objective by one run after another, until it is optimal within `tol` or the rounds are spent."""
    fit = _Fit(objective, settings)
    blocks = objective.loss.largest_curvature(np.zeros((1, 0))).shape[0]
    if len(fit.model) // blocks > _MOST_PARAMS:
        scaled = ScaledCoordinates(_largest_diagonal(objective))
        fit.add_stage(scaled, _largest_by_products(objective, scaled), settings.max_rounds, settings.tol)
        return fit.result(fit.optimality(scaled))
    if objective.loss.is_quadratic:
        exact = _coordinates_at(objective, fit.model, 0.0)
        if fit.optimality(exact) > settings.tol:
            fit.add_stage(exact, _largest_at(objective, fit.model, 0.0, exact), settings.max_rounds, settings.tol)
        return fit.result(fit.optimality(exact))
    return _fit_in_stages(fit)


def _fit_in_stages(fit: _Fit) -> FitResult:
    objective, settings, highest, most_rounds = fit.objective, fit.settings, _SAFEST, _STAGE_ROUNDS
    optimality = fit.optimality(_coordinates_at(objective, fit.model, 0.0))
    while optimality > settings.tol and fit.rounds_left > 0:
        coordinates = _coordinates_at(objective, fit.model, highest)
        # The nearer the optimum, the longer the curvature of the stage's start is good for.
        target = max(_MARGIN * settings.tol, min(_STAGE_GAIN, optimality) * fit.optimality(coordinates))
        largest = _largest_at(objective, fit.model, highest, coordinates)
        better = fit.add_stage(coordinates, largest, min(fit.rounds_left, most_rounds), target)
        if better:
            highest *= _LOOSER
            optimality = fit.optimality(_coordinates_at(objective, fit.model, 0.0))
        elif highest < _SAFEST:
            highest = min(_SAFEST, highest / _LOOSER**2)
        elif most_rounds > _MOST_STAGE_ROUNDS:
            break  # where every step is safe and time is given, the strategy does not descend
        if not (better and fit.reached_target):
            most_rounds *= 2  # slow clients may not have had their turn
    return fit.result(optimality)


class _Fit:
    """The model reached so far, and the runs that led to it."""

    def __init__(self, objective: SiteObjective, settings: FitSettings) -> None:
        self.objective = objective
        self.settings = settings
        self.model = np.zeros(len(objective.penalty))
        self.value, self._slope = objective.pooled(self.model)
        self.runs: list[Run] = []
        self.rounds_left = settings.max_rounds
        self.reached_target = False

    def optimality(self, coordinates: Coordinates) -> float:
        """The gradient in these coordinates, over the length of the model."""
        norm = float(np.linalg.norm(coordinates.gradient(self._slope)))
        if norm == 0.0:
            return 0.0
        length = coordinates.length(self.model)
        return norm / length if length > 0.0 else np.inf

    def add_stage(self, coordinates: Coordinates, largest: float, rounds: int, target: float) -> bool:
        """Run a stage from the model reached. If it made matters worse it is undone, and the answer is False."""
        settings, problem = self.settings, StageProblem(self.objective, coordinates, self.model)
        steepness = float(np.linalg.norm(coordinates.gradient(self._slope)))
        experiment = Experiment(
            name=settings.name,
            seed=settings.seed + len(self.runs),
            num_clients=problem.num_clients,
            strategy=_strategy(settings.strategy, problem.num_examples, largest, settings.weighting),
            delays=delays_named(settings.delays) if isinstance(settings.delays, str) else settings.delays,
            budget=Budget(rounds=rounds),
            stopping=Stopping(metric="gradient_norm", target=target, patience=_PATIENCE),
            evaluation=Evaluation(distance=False),
            divergence_norm=1e6 * steepness,
        )
        stage = run(experiment, problem=problem, threads=1, progress=False)
        self.runs.append(stage)
        self.rounds_left -= max(1, int(stage.evaluations["round"][-1]))
        self.reached_target = bool(stage.evaluations["gradient_norm"][-1] <= target)
        reached = problem.model_at(stage.params)
        value, slope = self.objective.pooled(reached)
        if not (np.isfinite(slope).all() and value <= self.value + _ROUNDING * abs(self.value)):
            return False
        self.model, self.value, self._slope = reached, value, slope
        return True

    def result(self, optimality: float) -> FitResult:
        """What has been reached."""
        rounds = max(1, self.settings.max_rounds - self.rounds_left)
        return FitResult(self.model, optimality, optimality <= self.settings.tol, rounds, tuple(self.runs))


def merges_by_weight(strategy: str | Strategy) -> bool:
    """Whether a fit by this strategy merges clients with their weights, so that their losses need not be weighted."""
    return isinstance(strategy, str) and strategy in ("afl", *_SYNCHRONOUS)


def _strategy(given: str | Strategy, sizes: Array, largest: float, weighting: Weighting) -> Strategy:
    """The strategy, or the one of that name with all clients at work, each making one step over all its rows.

    A synchronous one averages steps from the same model: that is gradient descent, at the rate of the mean's curvature,
    which is 1. Others merge a client's step alone, so its own curvature L_c says how long it may be: below 2 / L_c for
    the mean of latest models, where each of them has to come nearer, and with care for the rest.
    """
    if not isinstance(given, str):
        return given
    by: Literal["samples", "equal"] = "samples" if weighting == "rows" else "equal"
    work = Work(batch_size=int(sizes.max()), steps=1, learning_rate=1.0 / max(largest, 1.0))
    if given == "afl":
        work = replace(work, learning_rate=_REACH * work.learning_rate)
        return AFL(concurrency=len(sizes), weighting=by, work=work, schedule=ConstantRate())
    if given in _SYNCHRONOUS:
        return FedAvg(cohort_size=len(sizes), weighting=by, work=replace(work, learning_rate=1.0))
    return strategy_named(given, len(sizes), work, ConstantRate())


def _coordinates_at(objective: SiteObjective, model: Array, highest: float) -> CurvatureCoordinates:
    """Those in which the mean of the clients' curvatures is the identity."""
    each = zip(objective.shares, objective.client_curvatures(model, highest), strict=True)
    return CurvatureCoordinates(np.asarray(sum(share * curvature for share, curvature in each)))


def _largest_at(objective: SiteObjective, model: Array, highest: float, coordinates: CurvatureCoordinates) -> float:
    """max_c L_c in these coordinates."""
    return max(coordinates.largest(curvature) for curvature in objective.client_curvatures(model, highest))


# ---- models too large for a matrix of curvature ----------------------------------------------------------------


def _largest_diagonal(objective: SiteObjective) -> Array:
    rows = objective.rows
    squares = np.repeat(rows.weights / rows.sizes, rows.sizes) @ rows.z**2
    return np.tile(objective.loss.steepest * squares, objective.loss.outputs) + objective.penalty


def _largest_by_products(objective: SiteObjective, coordinates: ScaledCoordinates) -> float:
    """max_c L_c in these coordinates, by Lanczos iterations."""
    from scipy.sparse.linalg import LinearOperator, eigsh  # when first needed: it takes a while to load

    p, found = objective.rows.z.shape[1], 0.0
    size = len(objective.penalty)
    for client, factor in enumerate(objective.factors):
        z, _ = objective.client_rows(client)
        share = factor * objective.loss.steepest / len(z)

        def product(v: Array, z: Array = z, share: float = share) -> Array:
            w = coordinates.to_params(v)
            curved = share * ((w.reshape(-1, p) @ z.T) @ z).ravel() + objective.penalty * w
            return coordinates.gradient(curved)

        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        start = np.ones(size)
        found = max(found, float(eigsh(operator, k=1, tol=1e-3, v0=start, return_eigenvectors=False)[0]))
    return 1.01 * found
