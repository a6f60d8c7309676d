"""How a run served each client: the common model on the client's own rows, against what it could have had alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import replace
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem, ScoresClients
from asyncfed.report.client_table import ClientTable, worst_tenth
from asyncfed.store.schema import DISPATCH, MERGE


def local_performance(
    experiment: Experiment,
    problem: Problem,
    params: np.ndarray,
    merges: np.ndarray,
    events: Iterable[tuple[Any, ...]],
    threads: int = 1,
) -> ClientTable:
    """The table of a run's clients.

    `alone` is the loss of a model that the client trained on its own training rows only, from the same start, at the
    strategy's base rate, for as many epochs as a client was merged for on average; `gain` is `alone − loss`, positive
    where federating paid. `weight` is the client's effective weight in what was minimised: its share of all weights
    that merges gave; see `effective_weights`.
    """
    if not isinstance(problem, ScoresClients):
        raise ConfigError(
            f"{type(problem).__name__} does not say how it serves single clients. Give it `parts`, `client_names` and "
            "`client_scores`, see asyncfed.problems.protocol.ScoresClients."
        )
    part = next(name for name in ("test", "validation", "training") if name in problem.parts)
    epochs = alone_epochs(experiment, merges)
    together = problem.client_scores(params, part, threads)
    alone = problem.client_scores(models_alone(experiment, problem, epochs, threads), part, threads)
    names = problem.client_names or tuple(map(str, range(problem.num_clients)))
    columns: dict[str, np.ndarray] = {
        "client": np.arange(problem.num_clients),
        "name": np.array(names),
        "rows": problem.num_examples,
        "rows_measured": together.rows,
        "merges": merges,
        "share": merges / max(1, merges.sum()),
        "weight": effective_weights(events, problem.num_clients),
        "loss": together.loss,
        "alone": alone.loss,
        "gain": alone.loss - together.loss,
    }
    if together.accuracy is not None and alone.accuracy is not None:
        columns |= {"accuracy": together.accuracy, "alone_accuracy": alone.accuracy}
    columns["worst"] = worst_tenth(together.loss)
    return ClientTable(columns, part, epochs)


def alone_epochs(experiment: Experiment, merges: np.ndarray) -> int:
    """Epochs that a client was merged for on average: the budget of a model trained alone; at least one ticket's."""
    epochs = experiment.strategy.work.epochs
    return max(epochs, round(epochs * float(merges.mean())))


def models_alone(experiment: Experiment, problem: Problem, epochs: int, threads: int = 1) -> np.ndarray:
    """Each client's own model (C, p), trained on its own training rows and nobody else's."""
    work = replace(experiment.strategy.work, epochs=epochs, proximal=0.0, start="server")
    start = problem.init(experiment.seed, how=experiment.init)
    clients = range(problem.num_clients)
    key = purpose_key(experiment.seed, "alone")
    keys = [draw_key(key, client, 0) for client in clients]
    starts = np.tile(start, (len(clients), 1))
    return problem.local_train_many(starts, list(clients), [work] * len(clients), keys, threads, overwrite=True)


def effective_weights(events: Iterable[tuple[Any, ...]], num_clients: int) -> np.ndarray:
    """Each client's share of all weights that merges gave, by the journal: what the objective minimised leans to.

    Where every client's latest model is averaged (`latest_average`), a client that was heard has its weight in that
    average, however often it was heard.
    """
    client_of: dict[int, int] = {}
    given, standing = np.zeros(num_clients), np.zeros(num_clients)
    for _, _, kind, ticket, client, _, weight, _, detail in events:
        if kind == DISPATCH:
            client_of[ticket] = client
        elif kind == MERGE:
            form = json.loads(detail)
            tickets = [ticket] if ticket is not None else form["tickets"]
            weights = [weight] if ticket is not None else form["weights"]
            owners = [client_of.pop(number) for number in tickets]
            np.add.at(given, owners, np.abs(weights))
            if "combiner" in form and form["combiner"]["name"] == "latest_average":
                standing[owners] = dict(form["combiner"]["settings"])["shares"]
    weights_of = standing if standing.any() else given
    return np.asarray(weights_of / max(weights_of.sum(), np.finfo(np.float64).tiny))
