"""Generalized AsyncSGD with the chances of being drawn that need the least time, for the speeds of given clients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.analysis.participation import mean_durations
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, replace
from asyncfed.delays.recorded_jobs import recorded_jobs
from asyncfed.experiment import Experiment
from asyncfed.rules.protocol import rule_of
from asyncfed.runs.result import RecordedRun
from asyncfed.strategies import Dispatching
from asyncfed.strategies.generalized_async_sgd import GeneralizedAsyncSGD
from asyncfed.strategies.samplers import Weighted
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.theory.optimal_sampling import SamplingPlan, optimal_sampling, sampling_plan


def optimal_chances(
    experiment: Experiment, recorded: RecordedRun | None = None, noise_ratio: float = 100.0
) -> SamplingPlan:
    """The chances with which tickets should go to the clients of an experiment, for the least time.

    Args:
        experiment: whose clients, delays, local work and number of tickets are taken.
        recorded: a run of the same clients; their mean durations are then those that it recorded, transfers and all,
            instead of those that follow from `experiment.delays`.
        noise_ratio: how much larger a client's squared stochastic gradient is than the squared gradient to be reached,
            above 0; see `asyncfed.theory.optimal_sampling`.

    Returns:
        The chances, and what is predicted of them.

    Raises:
        ConfigError: the strategy does not say how many tickets are out at once; delays have no mean; or the run
            recorded no report of some client.
    """
    strategy = experiment.strategy
    if not isinstance(strategy, Dispatching):
        raise ConfigError(
            f"{type(strategy).__name__} does not say how many tickets are out at once. Begin with a strategy that "
            "does, such as generalized_async_sgd."
        )
    tickets = strategy.dispatch.tickets
    if recorded is None:
        means = mean_durations(experiment)
        return optimal_sampling(means.compute, tickets, means.download + means.upload, noise_ratio)
    jobs = recorded_jobs(recorded.journal.event_rows())
    seconds = []
    for client in range(experiment.count_clients()):
        reported = [job.seconds for job in jobs.get(client, ()) if not job.lost]
        if not reported:
            raise ConfigError(
                f"{recorded.path} has no report of client {client}, so its speed is unknown. Record a longer run."
            )
        seconds.append(float(np.mean(reported)))
    return optimal_sampling(seconds, tickets, 0.0, noise_ratio)


def sampling_choices(
    mean_service: Sequence[float], tickets: int, noise_ratio: float = 100.0
) -> dict[str, SamplingPlan]:
    """Three ways to draw these clients: equally, for the least time, and for the fewest updates.

    Args:
        mean_service: mean seconds that a ticket keeps its client at work, above 0.
        tickets: how many are out at once, 1 or more; a busy client queues them.
        noise_ratio: see `optimal_chances`.

    Returns:
        The plans by these names.
    """
    return {
        "equal": sampling_plan(mean_service, tickets, noise_ratio=noise_ratio),
        "least time": optimal_sampling(mean_service, tickets, noise_ratio=noise_ratio),
        "fewest updates": optimal_sampling(mean_service, tickets, noise_ratio=noise_ratio, per="update"),
    }


def with_optimal_sampling(
    experiment: Experiment, recorded: RecordedRun | None = None, noise_ratio: float = 100.0
) -> Experiment:
    """The experiment with Generalized AsyncSGD and the chances of `optimal_chances` in place of its strategy.

    Work, number of tickets, schedule and rule stay those of the experiment's strategy, and the server's rate too if
    that is Generalized AsyncSGD already.

    Args:
        experiment: what is to be run.
        recorded: see `optimal_chances`.
        noise_ratio: see `optimal_chances`.

    Returns:
        The experiment, which can be run or written as TOML.

    >>> import asyncfed as af
    >>> halves = af.delays.Delays(devices=(af.delays.Device(name="slow", share=0.5, slowness=10.0),))
    >>> planned = with_optimal_sampling(af.replace(af.presets.regression(), delays=halves))
    >>> len(set(planned.strategy.sampler.weights)), round(sum(planned.strategy.sampler.weights), 12)
    (2, 1.0)
    """
    plan, strategy = optimal_chances(experiment, recorded, noise_ratio), experiment.strategy
    assert isinstance(strategy, Dispatching)
    sampled = GeneralizedAsyncSGD(
        concurrency=plan.prediction.in_flight,
        server_lr=strategy.server_lr if isinstance(strategy, GeneralizedAsyncSGD) else 1.0,
        sampler=Weighted(weights=tuple(plan.probabilities.tolist()), busy="queue"),
        work=strategy.work,
        schedule=strategy.schedule or ConstantRate(),
        rule=rule_of(strategy) or UNSET,
    )
    return replace(experiment, strategy=sampled)
