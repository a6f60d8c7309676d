"""A model for each client: the common one, trained further on the client's own rows where that helps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from asyncfed.analysis.client_table import ClientTable
from asyncfed.core.errors import ConfigError
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import UNSET, replace
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Jobs, ScoringProblem
from asyncfed.problems.row_losses import MeasuresRows, RowLosses

STEPS = (8, 32, 128, 512, 2048)
"""How many local steps are tried, one after another."""


class PersonalModels(NamedTuple):
    """Each client's own model, and how far it is from the common one.

    Args:
        models: (C, p).
        steps: local steps that each was trained for beyond the common model, (C,); 0: it is the common model.
    """

    models: np.ndarray
    steps: np.ndarray


class PersonalizedClients(NamedTuple):
    """What `Run.personalize` gives.

    Args:
        models: each client's model, (C, p), in the order of the clients' numbers.
        steps: local steps that each was trained for beyond the common model, (C,); 0: it is the common model.
        table: the table of clients, with `personalized` and `personal_gain`.
    """

    models: np.ndarray
    steps: np.ndarray
    table: ClientTable


def personalize(
    experiment: Experiment, problem: ScoringProblem, params: np.ndarray, threads: int = 1
) -> PersonalModels:
    """Fine-tune the common model on each client's own training rows, for as many steps as its validation rows favour.

    Every client trains from the common model at the strategy's rate for 8, 32, … 2,048 steps. Of these models and the
    common one, it takes the one with the least loss on its validation rows, but stays with the common model unless that
    is worse by more than the standard error of the difference: few rows prove little.

    Args:
        experiment: the run's; its strategy's work says rate and batch size.
        problem: the run's problem, with validation rows.
        params: the common model, (p,).
        threads: threads to compute with, 1 or more.

    Returns:
        The clients' models.

    Raises:
        ConfigError: there are no validation rows, or the problem cannot measure single rows.
    """
    if "validation" not in problem.parts:
        raise ConfigError(
            "Personalisation chooses by validation rows how far each client's model is trained, and there are none. "
            "Hold rows out: [holdout] validation = 0.15."
        )
    if not isinstance(problem, MeasuresRows):
        raise ConfigError(
            f"{type(problem).__name__} does not measure single rows, by which personalisation judges whether a client "
            "gains. Give it `row_losses`, see asyncfed.problems.row_losses.MeasuresRows."
        )
    clients = list(range(problem.num_clients))
    key = purpose_key(experiment.seed, "personalize")
    common = problem.row_losses(params, "validation")
    chosen = np.tile(np.asarray(params), (problem.num_clients, 1))
    steps = np.zeros(problem.num_clients, np.int64)
    lowest = np.zeros(problem.num_clients)
    models, done = chosen.copy(), 0
    plain = replace(
        experiment.strategy.work, proximal=0.0, start="server", uplink=UNSET, downlink=UNSET, loss=UNSET, patience=UNSET
    )
    for number, count in enumerate(STEPS):
        work = replace(plain, steps=count - done)
        keys = [draw_key(key, client, number) for client in clients]
        models = problem.local_train_many(Jobs(models, clients, [work] * len(clients), keys), threads)
        done = count
        gain, error = _mean_and_error(common, problem.row_losses(models, "validation"))
        better = (gain > error) & (gain > lowest) & np.isfinite(models).all(axis=1)
        chosen[better], steps[better], lowest[better] = models[better], count, gain[better]
    return PersonalModels(chosen, steps)


def _mean_and_error(one: RowLosses, other: RowLosses) -> tuple[np.ndarray, np.ndarray]:
    """By how much each client's mean loss falls from one model to the other, and the standard error of that, (C,)."""
    sizes = np.diff(one.offsets)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    fall, some = one.loss - other.loss, np.maximum(sizes, 1)
    means = np.bincount(owner, fall, len(sizes)) / some
    squares = np.bincount(owner, (fall - means[owner]) ** 2, len(sizes))
    errors = np.sqrt(squares / np.maximum(sizes - 1, 1) / some)
    return np.where(sizes > 1, means, 0.0), np.where(sizes > 1, errors, np.inf)
