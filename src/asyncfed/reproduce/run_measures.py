"""Numbers that sum up a whole run, by name: what a sweep draws. Each takes the experiment and its run."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.data import Clients
from asyncfed.experiment import Experiment
from asyncfed.reproduce.cached_runs import CachedRun

Measure = Callable[[Experiment, CachedRun], float]


def last_level(loss: np.ndarray) -> float:
    """The geometric mean of the last tenth of a curve: its level at the end, freed from single rounds.

    >>> round(last_level(np.array([9.0] * 18 + [1.0, 4.0])), 12)
    2.0
    """
    tail = loss[-max(1, len(loss) // 10) :]
    return float(np.exp(np.mean(np.log(tail))))


def last_objective(experiment: Experiment, run: CachedRun) -> float:
    """NaN for a run that diverged: it has no level."""
    return float("nan") if run.outcome.verdict == "diverged" else last_level(run.outcome.objective)


def largest_staleness(experiment: Experiment, run: CachedRun) -> float:
    """The largest staleness of a merged update."""
    return float(np.max(run.outcome.rounds["staleness_max"], initial=0.0))


WHAT_DATA_DEPEND_ON = ("seed", "num_clients", "data", "split", "dtype")


@lru_cache(maxsize=16)
def _clients(experiment: Experiment) -> Clients:
    """The data of many runs that differ in strategy and delays only are made once."""
    return experiment.clients()


def weighted_optimum(experiment: Experiment, shares: np.ndarray) -> np.ndarray:
    """The minimiser of `sum_c shares_c * (mean squared error of client c)`, weights and bias; least squares only."""
    clients = _clients(Experiment(**{part: getattr(experiment, part) for part in WHAT_DATA_DEPEND_ON}))
    sizes = np.diff(clients.offsets)
    row_weights = np.sqrt(np.repeat(shares / sizes, sizes))
    rows = np.column_stack([clients.x, np.ones(len(clients.y))])
    return np.asarray(np.linalg.lstsq(rows * row_weights[:, None], clients.y * row_weights, rcond=None)[0])


def equal_optimum(experiment: Experiment) -> np.ndarray:
    """The minimiser of the objective in which all clients count equally."""
    num_clients = experiment.count_clients()
    return weighted_optimum(experiment, np.full(num_clients, 1.0 / num_clients))


def merge_shares(run: CachedRun) -> np.ndarray:
    """Each client's share of all merged updates."""
    merges = run.outcome.participation
    return np.asarray(merges / max(1, merges.sum()))


def seconds_per_ticket(experiment: Experiment) -> np.ndarray:
    """How long each client's first ticket takes to compute: with constant delays, how long all of them take."""
    num_clients, work = experiment.count_clients(), experiment.strategy.work
    delays = experiment.delays.bind(num_clients, experiment.seed)
    return np.array([delays.timing(client, 0, work, 1).compute for client in range(num_clients)])


def optimum_shift(experiment: Experiment, run: CachedRun) -> float:
    """How far the optimum of the objective weighted by shares of merges is from that of equal weights."""
    return float(np.linalg.norm(weighted_optimum(experiment, merge_shares(run)) - equal_optimum(experiment)))


def distance_to_equal_optimum(experiment: Experiment, run: CachedRun) -> float:
    """How far the final model is from `equal_optimum`."""
    return float(np.linalg.norm(run.params - equal_optimum(experiment)))


MEASURES: dict[str, Measure] = {
    "last_objective": last_objective,
    "largest_staleness": largest_staleness,
    "optimum_shift": optimum_shift,
    "distance_to_equal_optimum": distance_to_equal_optimum,
}


def measure_named(name: str) -> Measure:
    """The measure of this name; a `ConfigError` suggests the nearest one."""
    if name not in MEASURES:
        raise ConfigError(f'There is no measure "{name}". {did_you_mean(name, MEASURES)}')
    return MEASURES[name]
