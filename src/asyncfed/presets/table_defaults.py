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
MOST_ROUNDS = 50_000
PATIENCE = 40
MIN_PROGRESS = 3e-5
MIN_PROGRESS_AT_A_KINK = 3e-4
"""For the hinge, whose steps have to shrink: it gains as much as 3e-5 for thousands of rounds."""

CURVATURES = {"least_squares": 1.0, "mse": 2.0, "logistic": 0.25, "softmax": 0.5, "squared_hinge": 1.0, "hinge": 1.0}
"""The largest second derivative of a loss in the margin; the hinge's is that of the squared hinge: see `step_size`."""


def default_penalty(data: PreparedData) -> float:
    """l2 = 1/n, n being all training rows: what scikit-learn's Ridge(alpha=1) and LogisticRegression(C=1) have."""
    return 1.0 / len(data.clients.y)


def default_strategy(
    name: str, fraction: float, data: PreparedData, model: ProblemDescription, learning_rate: float | None = None
) -> Strategy:
    """A strategy by name, whose clients make as many steps of `BATCH_SIZE` rows, and as long ones, as the data allow.

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
    return strategy_named(name, tickets, _work(data, model, learning_rate), _schedule(model))


def _work(data: PreparedData, model: ProblemDescription, learning_rate: float | None) -> Work:
    from asyncfed.theory.local_steps import local_steps  # when first needed: it takes as long to load as all else here
    from asyncfed.theory.step_size import step_size

    loss, fit_bias = str(getattr(model, "loss", "softmax")), bool(getattr(model, "fit_bias", True))
    curvature = CURVATURES.get(loss)
    if loss == "huber_hinge":
        curvature = 1.0 / (getattr(model, "hinge_width", None) or 1.0)
    if curvature is None:  # a problem of one's own
        return Work(batch_size=BATCH_SIZE)
    rate = learning_rate or step_size(data.clients, BATCH_SIZE, curvature, getattr(model, "l2", 0.0), fit_bias)
    steps = local_steps(data.clients, rate, curvature, fit_bias)
    return Work(steps=steps, batch_size=BATCH_SIZE, learning_rate=rate)


def _schedule(model: ProblemDescription) -> Schedule:
    """A constant rate; falling over rounds for the hinge, at whose kink constant steps do not settle."""
    return DelayAware(delay_penalty=0.0, over="round") if _has_kink(model) else ConstantRate()


def _has_kink(model: ProblemDescription) -> bool:
    return isinstance(model, LinearModel) and model.loss == "hinge"


def default_delays(work: Work, of_a_ticket: DelayDescription | None = None) -> DelayDescription:
    """How long tickets take: these delays, or those of stragglers, for a ticket with this work.

    Plain `Delays` are those of a pass over a client's data, of which a small client makes many in a few steps.

    Args:
        work: the local work that the delays are for.
        of_a_ticket: how long such a ticket takes; None for stragglers.

    Returns:
        The delays; a ticket with more steps takes longer in proportion.
    """
    delays = stragglers() if of_a_ticket is None else of_a_ticket
    return PerWork(delays=delays, epochs=work.epochs, steps=work.steps)


def default_evaluation(strategy: Strategy, data: PreparedData) -> Evaluation:
    """As often as measuring costs no more than training: it passes over all rows, a round over those of its batches."""
    clients = data.clients.num_clients
    updates = strategy.round_size(clients) if isinstance(strategy, Dispatching) else clients
    rows, work = len(data.clients.y), strategy.work
    trained = updates * work.count_steps(rows // clients) * work.batch_size
    return Evaluation(every=max(1, round(rows / trained)))


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
