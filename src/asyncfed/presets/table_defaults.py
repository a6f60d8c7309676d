"""What a run on a table does if nobody says: settings that follow from the data, so that one default suits them all."""

from __future__ import annotations

from math import ceil

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Schedule, Work
from asyncfed.data import PreparedData
from asyncfed.delays import DelayDescription, PerWork, stragglers
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.stopping import Stopping
from asyncfed.presets.named_strategies import strategy_named
from asyncfed.problems.linear import LinearModel
from asyncfed.problems.protocol import ProblemDescription
from asyncfed.strategies import Dispatching
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.schedules import ConstantRate, DelayAware

STRATEGY = "scaffold_async"
"""Reaches the optimum of the common objective although clients differ in data and speed."""

BATCH_SIZE = 256
LOCAL_STEPS = 32
MOST_ROUNDS = 20_000
PATIENCE = 40
MIN_PROGRESS = 1e-5
MIN_PROGRESS_AT_A_KINK = 3e-4
"""For the hinge, whose steps have to shrink: it gains as much as 1e-5 for thousands of rounds."""

CURVATURES = {"least_squares": 1.0, "mse": 2.0, "logistic": 0.25, "softmax": 0.5, "squared_hinge": 1.0, "hinge": 1.0}
"""The largest second derivative of a loss in the margin; the hinge's is that of the squared hinge: see `step_size`."""


def default_penalty(data: PreparedData) -> float:
    """l2 = 1/n, n being all training rows: what scikit-learn's Ridge(alpha=1) and LogisticRegression(C=1) have."""
    return 1.0 / len(data.clients.y)


def default_strategy(
    name: str, fraction: float, data: PreparedData, model: ProblemDescription, learning_rate: float | None = None
) -> Strategy:
    """A strategy by name, whose clients make `LOCAL_STEPS` steps of `BATCH_SIZE` rows at a rate the data allow.

    Args:
        name: as for `strategy_named`.
        fraction: the share of the clients at work at once, above 0 and at most 1.
        data: the clients' rows.
        model: what is learnt.
        learning_rate: the rate, above 0; None for the one that `step_size` allows.

    Returns:
        The strategy.
    """
    if not 0 < fraction <= 1:
        raise ConfigError(f"fraction is {fraction}; it must be above 0 and at most 1.")
    tickets = max(1, ceil(fraction * data.clients.num_clients))  # of three clients two: one would be waited for
    rate = _rate(data, model) if learning_rate is None else learning_rate
    work = Work(steps=LOCAL_STEPS, batch_size=BATCH_SIZE, learning_rate=rate)
    return strategy_named(name, tickets, work, _schedule(model))


def _rate(data: PreparedData, model: ProblemDescription) -> float:
    loss = model.loss if isinstance(model, LinearModel) else str(getattr(model, "loss", "softmax"))
    curvature = CURVATURES.get(loss)
    if loss == "huber_hinge":
        curvature = 1.0 / (getattr(model, "hinge_width", None) or 1.0)
    if curvature is None:
        return Work().learning_rate
    from asyncfed.theory.step_size import step_size  # when first needed: it takes as long to load as all else here

    return step_size(data.clients, BATCH_SIZE, curvature, getattr(model, "l2", 0.0), getattr(model, "fit_bias", True))


def _schedule(model: ProblemDescription) -> Schedule:
    """A constant rate; falling over rounds for the hinge, at whose kink constant steps do not settle."""
    return DelayAware(delay_penalty=0.0, over="round") if _has_kink(model) else ConstantRate()


def _has_kink(model: ProblemDescription) -> bool:
    return isinstance(model, LinearModel) and model.loss == "hinge"


def default_delays(of_a_ticket: DelayDescription | None = None) -> DelayDescription:
    """How long tickets take: these delays, or those of stragglers, for a ticket of `LOCAL_STEPS` steps.

    Plain `Delays` are those of a pass over a client's data, of which a small client makes many in so many steps.

    Args:
        of_a_ticket: how long a ticket of the default local work takes; None for stragglers.

    Returns:
        The delays; a ticket with more steps takes longer in proportion.
    """
    return PerWork(delays=stragglers() if of_a_ticket is None else of_a_ticket, steps=LOCAL_STEPS)


def default_evaluation(strategy: Strategy, data: PreparedData) -> Evaluation:
    """As often as measuring costs no more than training: it passes over all rows, a round over those of its batches."""
    clients = data.clients.num_clients
    updates = strategy.round_size(clients) if isinstance(strategy, Dispatching) else clients
    return Evaluation(every=max(1, round(len(data.clients.y) / (updates * LOCAL_STEPS * BATCH_SIZE))))


def default_stopping(data: PreparedData, model: ProblemDescription) -> Stopping:
    """Until the objective has converged, or the loss on validation rows rises beyond its standard error."""
    return Stopping(
        metric="objective",
        patience=PATIENCE,
        min_progress=MIN_PROGRESS_AT_A_KINK if _has_kink(model) else MIN_PROGRESS,
        keep="best",
        overfit_metric="validation_loss" if "validation" in data.held_out else None,
    )


def default_budget() -> Budget:
    """So large that hardly a run meets it."""
    return Budget(rounds=MOST_ROUNDS)
