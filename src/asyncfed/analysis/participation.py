"""Fast clients: how often each will be merged, predicted from an experiment; and its effect, read from a run."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, kind_of, to_plain
from asyncfed.core.types import Work
from asyncfed.delays import ExpectedDurations, LimitsBandwidth, PredictableDelays, expected_durations
from asyncfed.engine.model_shapes import with_model_shapes
from asyncfed.experiment import Experiment
from asyncfed.kernels.losses import LEAST_SQUARES, MSE
from asyncfed.problems.linear import Linear
from asyncfed.problems.objective import Objective
from asyncfed.problems.protocol import Problem
from asyncfed.problems.softmax import Softmax
from asyncfed.problems.softmax_objective import SoftmaxObjective
from asyncfed.problems.step_rates import step_rates
from asyncfed.rules.protocol import rule_of, upload_size
from asyncfed.runs.result import RecordedRun
from asyncfed.store.events import recorded_merges
from asyncfed.strategies import Dispatching, Sampler
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.samplers import PredictableSampler
from asyncfed.theory.bias import Bias, bias_of_weights, effective_weights, merge_shares
from asyncfed.theory.linear_data import LinearData
from asyncfed.theory.queueing import Prediction, cohort_dispatch, idle_dispatch, queued_dispatch
from asyncfed.uplinks.chain import declared_size

MOST_PARAMS_FOR_EIGENVALUES = 2000

# ---- before a run --------------------------------------------------------------------------------------------


def predicted_participation(
    experiment: Experiment, num_examples: NDArray[np.int64] | None = None, problem: Problem | None = None
) -> Prediction:
    """Shares, throughput and staleness to expect, from the strategy's dispatching and the mean durations.

    Args:
        experiment: what is to be run.
        num_examples: rows of each client; saves generating the data where durations depend on them
            (`delays.per_sample`, `work.steps`).
        problem: what is learnt; saves building it where durations depend on the bytes of the model (bandwidth).

    Returns:
        The prediction; its `limits` say what holds exactly and which parts of this experiment are left out of account.

    Raises:
        ConfigError: there is no formula for this strategy, sampler or delay model.
    """
    strategy = experiment.strategy
    clients = experiment.count_clients() if num_examples is None else len(num_examples)
    strategy.check(clients)
    if not isinstance(strategy, Dispatching):
        raise ConfigError(
            f"{type(strategy).__name__} does not say how it dispatches, so participation has no formula. Give it the "
            "properties of asyncfed.strategies.Dispatching, or simulate it."
        )
    sent = _bytes_of_tickets(experiment, clients, problem)
    means = _mean_durations(experiment, clients, num_examples, sent)
    policy, sampler = strategy.dispatch, strategy.sampler
    if policy.manner == "other" or not policy.predictable:
        raise ConfigError(
            f"whom {type(strategy).__name__} dispatches or merges depends on who arrives when, so participation has no "
            "formula. Simulate it."
        )
    if not isinstance(sampler, PredictableSampler):
        raise ConfigError(
            f"the sampler {type(sampler).__name__} has no `draw_weights`, so participation has no formula. Add it (see "
            "asyncfed.strategies.samplers.PredictableSampler), or simulate it."
        )
    weights = np.array(sampler.draw_weights(clients, policy.tickets))
    if policy.manner == "cohort":
        prediction = _predict_cohorts(means, policy.tickets, sampler, weights)
        versions = -(-policy.tickets // policy.merged_at_once)  # of a round; its first is merged with staleness 0
        prediction = replace(prediction, staleness=prediction.staleness + (versions - 1) / 2)
    elif sampler.queues:
        prediction = queued_dispatch(means.compute, policy.tickets, weights, means.download + means.upload)
    else:
        prediction = idle_dispatch(means.total, policy.tickets, weights)
    if policy.manner == "keep_busy":  # one version per emptied buffer, and a ticket may start anywhere in one
        prediction = replace(prediction, staleness=prediction.staleness / policy.merged_at_once)
    return replace(prediction, limits=" ".join([prediction.limits, *_left_out(experiment, prediction, sent)]))


def mean_durations(
    experiment: Experiment, num_examples: NDArray[np.int64] | None = None, problem: Problem | None = None
) -> ExpectedDurations:
    """The mean seconds of each part of a ticket, client by client; arguments as for `predicted_participation`."""
    clients = experiment.count_clients() if num_examples is None else len(num_examples)
    return _mean_durations(experiment, clients, num_examples, _bytes_of_tickets(experiment, clients, problem))


def _mean_durations(
    experiment: Experiment, clients: int, num_examples: NDArray[np.int64] | None, sent: SentBytes
) -> ExpectedDurations:
    delays, work = experiment.delays, experiment.strategy.work
    needs_examples = not isinstance(delays, PredictableDelays) or delays.depends_on_examples or work.steps is not UNSET
    if num_examples is None and needs_examples:
        num_examples = np.diff(experiment.clients().offsets)
    return expected_durations(delays, clients, experiment.seed, work, num_examples, sent.down, sent.up)


class SentBytes(NamedTuple):
    """What a ticket downloads and uploads, in bytes, and what is left out of that, a clause each."""

    down: int
    up: int
    left_out: tuple[str, ...]


def _bytes_of_tickets(experiment: Experiment, num_clients: int, problem: Problem | None) -> SentBytes:
    """The model down, unless clients start from their own, and the model or an uplink's message up.

    All 0 where no bandwidth is limited: then nobody asks, and the problem need not be built.
    """
    delays = experiment.delays.bind(num_clients, experiment.seed)
    if not (isinstance(delays, LimitsBandwidth) and delays.limits_bandwidth):
        return SentBytes(0, 0, ())
    strategy = experiment.run_strategy()
    built = experiment.problem() if problem is None else problem
    work, left_out = with_model_shapes(strategy, built).work, []
    model = up = built.num_params * built.dtype.itemsize
    down = model
    if work.downlink is not UNSET:
        size = work.downlink.size(built.num_params, built.dtype.itemsize)
        down = model if size is None else size
        known = "the first downloads are whole models, and count as differences"
        left_out.append("downloads, whose size is not known before, count as whole models" if size is None else known)
    if work.uplink is not UNSET:
        declared = declared_size(work.uplink, built.num_params, built.dtype.itemsize)
        up = model if declared is None else declared
        if declared is None:
            left_out.append("uploads, whose size is known only after training, count as whole models")
    rule = rule_of(strategy)
    protocol = None if rule is None else upload_size(rule, built.num_params, num_clients)
    if protocol is not None:
        up = protocol
    if "rule" in to_plain(experiment.strategy):
        left_out.append("the time of what the rule sends beside the model is left out")
    return SentBytes(0 if work.start == "own" else down, up, tuple(left_out))


def _predict_cohorts(
    means: ExpectedDurations, cohort_size: int, sampler: Sampler, weights: NDArray[np.float64]
) -> Prediction:
    if sampler.queues or len(set(weights.tolist())) > 1:
        raise ConfigError(
            f"cohorts drawn by {type(sampler).__name__} have no formula for how long a round takes. Simulate them, or "
            "use the sampler uniform_idle."
        )
    return cohort_dispatch(means.total, cohort_size)


def _left_out(experiment: Experiment, prediction: Prediction, sent: SentBytes) -> list[str]:
    """What of this very experiment the formulas do not know."""
    settings, delays = to_plain(experiment.strategy), experiment.delays
    found = []
    if prediction.dispatch == "cohort":
        found.append("a round's time is that of exponential durations with the same means")
    if isinstance(delays, PredictableDelays):
        found += delays.simplifications(prediction.dispatch == "queued")
    else:
        found.append("mean durations are estimated from draws, absences left out")
    found += sent.left_out
    if experiment.churn:
        found.append("clients come and go, which is left out: all are taken to be there")
    if settings.get("max_staleness") is not None and settings["when_stale"] != "damp":
        what = "dropped" if settings["when_stale"] == "drop" else "held back"
        found.append(f"stale updates are {what}, which is left out: shares are those of the reports")
    return [f"Here: {'; '.join(found)}."] if found else []


# ---- after a run ---------------------------------------------------------------------------------------------


class Merges(NamedTuple):
    """One entry per merged update: its client, its weight in the merge, and the sum of its local learning rates.

    `rules` are the names of the vector rules the merges used, if any; `own_start` tells of clients that trained on from
    their own models.
    """

    clients: NDArray[np.int64]
    weights: NDArray[np.float64]
    steps: NDArray[np.float64]
    rules: frozenset[str]
    own_start: bool


def bias_of_run(run: RecordedRun) -> Bias:
    """How unevenly the clients of a run were merged, and where that leads, on the data the run was made with."""
    built = run.problem
    if not isinstance(built, Linear | Softmax):
        raise ConfigError(
            f"the bias of a run is measured for linear models and softmax; this one learnt a {type(built).__name__}. "
            "Use run.participation() for the merges of each client."
        )
    best = built.optimum()
    if best is None:
        raise ConfigError(
            f'the loss "{built.model.loss}" with l2 = {built.model.l2:g} has no single minimiser to compare with. Use '
            "least squares, or a smooth loss with l2 above 0."
        )
    merges = merges_of(run, built.num_examples)
    if not len(merges.clients):
        raise ConfigError(
            f"{run.path} holds no merge yet, so there is no participation to measure; let the run go on first."
        )
    weight = effective_weights(merges.clients, merges.weights, built.num_clients, merges.steps)
    of_loss = built if isinstance(built, Softmax) else LinearData.of_problem(built)
    objective = of_loss.objective(weight)
    applies, why = _follows_the_weights(merges)
    return bias_of_weights(
        objective,
        weight,
        merge_shares(np.bincount(merges.clients, minlength=built.num_clients)),
        _strong_convexity(objective, best),
        applies,
        why,
        best,
    )


def merges_of(run: RecordedRun, num_examples: NDArray[np.int64]) -> Merges:
    """All merged updates of a run in the order of their merging."""
    merges = list(recorded_merges(run.journal.event_rows()))
    updates = [update for merge in merges for update in merge.updates]
    step = cache(local_step)
    return Merges(
        clients=np.array([update.client for update in updates], np.int64),
        weights=np.array([update.weight for update in updates], np.float64),
        steps=np.array([step(update.work, int(num_examples[update.client])) for update in updates], np.float64),
        rules=frozenset(merge.rule for merge in merges if merge.rule is not None)
        | rule_kinds(run.experiment.run_strategy()),
        own_start=any(update.work.start == "own" for update in updates),
    )


def rule_kinds(strategy: Strategy) -> frozenset[str]:
    """The kind of a strategy's rule, if it does anything but the weighted sum of its merges."""
    rule = rule_of(strategy)
    return frozenset() if rule is None or rule.theorem is not None else frozenset({str(kind_of(type(rule)))})


def local_step(work: Work, num_examples: int) -> float:
    """Σ of the learning rates of all mini-batches: Σ_i learning_rate / (e_i + 1)^decay, in epoch e_i.

    >>> local_step(Work(epochs=2, batch_size=4, learning_rate=0.5), num_examples=10)
    3.0
    """
    return float(step_rates(work, num_examples).sum())


def _strong_convexity(objective: Objective | SoftmaxObjective, at: NDArray[Any]) -> float:
    """μ of F^p: exact for a quadratic of moderate size, else what the penalty alone guarantees."""
    quadratic = isinstance(objective, Objective) and objective.loss_code in (LEAST_SQUARES, MSE)
    if quadratic and len(at) <= MOST_PARAMS_FOR_EIGENVALUES:
        values = np.linalg.eigvalsh(objective.hessian(at))
        return float(values[0]) if values[0] > values[-1] * len(at) * np.finfo(np.float64).eps else 0.0
    return float(objective.penalty.min())


def _follows_the_weights(merges: Merges) -> tuple[bool, str]:
    """Whether merges like these head for the minimiser of F^p, and a sentence that says so."""
    if merges.own_start:
        return False, "Clients train on from their own models and never download: no common objective is followed."
    if "latest_average" in merges.rules:
        return False, (
            "The server averages each client's latest model, which counts the same whatever the client's speed: shares "
            "of the merges are not weights here. Speed shows as older models of slow clients, not as bias."
        )
    if merges.rules:
        return False, f"The rule {', '.join(sorted(merges.rules))} is not a weighted sum, so merges have no weights."
    return True, (
        "Each merge moves the model a step along its client's update; with small steps the run heads for the minimiser "
        "of the objective weighted like this. With long local training it stays somewhere between that and the "
        "weighted mean of the clients' own minimisers."
    )
