"""Each client's loss under the common model, on its own rows, beside that of a model trained on its rows alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from asyncfed.analysis.bootstrap import mean_intervals
from asyncfed.analysis.client_table import ClientTable, worst_tenth
from asyncfed.analysis.convergence import Convergence
from asyncfed.analysis.personalization import PersonalModels
from asyncfed.core.errors import DataError
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import UNSET, replace
from asyncfed.core.types import Work
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Jobs, Problem, ScoringProblem, as_scoring_problem
from asyncfed.problems.row_losses import MeasuresRows
from asyncfed.store.events import Event, recorded_merges

MOST_OPTIMA = 1000
"""Finding a client's optimum takes about a millisecond."""


def measure_clients(
    experiment: Experiment,
    problem: Problem,
    params: np.ndarray,
    merges: np.ndarray,
    events: Iterable[Event],
    threads: int = 1,
    convergence: Convergence | None = None,
    personal: PersonalModels | None = None,
) -> ClientTable:
    """The table of a run's clients.

    `alone` is the loss of the best model that the client could have had from its own training rows only: the one that
    minimises its own loss, where there is one, or else one trained from the same start, at the strategy's base rate,
    for as many epochs as a client was merged for on average (`alone_epochs`; 0 for the former). `gain` is
    `alone − loss`, positive where federating paid, with its 95 % interval over the client's rows. Both are measured on
    held-out rows only, and of a run that had converged: on rows it was trained on, the client's own model wins always,
    and against a model that is not done yet, mostly. `weight` is the client's effective weight in what was minimised:
    its share of all weights that merges gave; see `effective_weights`. With `personal` models, `personalized` is their
    loss and `personal_gain` what they gain on the common one.
    """
    able = as_scoring_problem(problem)
    part = next(name for name in ("test", "validation", "training") if name in able.parts)
    together = able.client_scores(params, part, threads)
    names = able.client_names or tuple(map(str, range(able.num_clients)))
    columns: dict[str, np.ndarray] = {
        "client": np.arange(able.num_clients),
        "name": np.array(names),
        "rows": able.num_examples,
        "rows_measured": together.rows,
        "merges": merges,
        "share": merges / max(1, merges.sum()),
        "weight": effective_weights(events, able.num_clients),
        "loss": together.loss,
    }
    if together.accuracy is not None:
        columns["accuracy"] = together.accuracy
    not_compared = ""
    if part == "training":
        not_compared = "no rows were held out"
    elif convergence is not None and not convergence.ok:
        not_compared = convergence.words
    if not not_compared:
        models, epochs = train_alone(experiment, able, merges, threads)
        columns |= _compare(able, params, models, part, experiment.seed, ("alone", "gain"), threads)
        columns["alone_epochs"] = epochs
    if personal is not None:
        columns |= _personal_columns(able, params, personal, part, experiment.seed, threads)
    columns["worst"] = worst_tenth(together.loss)
    return ClientTable(columns, part, not_compared)


def _personal_columns(
    problem: ScoringProblem, params: np.ndarray, personal: PersonalModels, part: str, seed: int, threads: int
) -> dict[str, np.ndarray]:
    """The loss of the clients' fine-tuned models and what it gains; exactly nothing for who has the common model."""
    found = _compare(problem, params, personal.models, part, seed, ("personalized", "extra"), threads)
    tuned = personal.steps > 0
    accuracy = {name: values for name, values in found.items() if name.endswith("accuracy")}
    return {
        "personalized": found["personalized"],
        "personal_gain": np.where(tuned, -found["extra"], 0.0),
        "personal_gain_low": np.where(tuned, -found["extra_high"], 0.0),
        "personal_gain_high": np.where(tuned, -found["extra_low"], 0.0),
        "personal_steps": personal.steps,
        **accuracy,
    }


def _compare(
    problem: ScoringProblem,
    params: np.ndarray,
    models: np.ndarray,
    part: str,
    seed: int,
    names: tuple[str, str],
    threads: int,
) -> dict[str, np.ndarray]:
    """Columns of the clients' own models: their loss, and how far it is above the common one's, with an interval."""
    loss, gain = names
    own = problem.client_scores(models, part, threads)
    columns = {loss: own.loss, gain: own.loss - problem.client_scores(params, part, threads).loss}
    low = high = np.full(problem.num_clients, np.nan)
    if isinstance(problem, MeasuresRows):
        together, apart = problem.row_losses(params, part), problem.row_losses(models, part)
        low, high = mean_intervals(apart.loss - together.loss, together.offsets, seed)
    columns |= {f"{gain}_low": low, f"{gain}_high": high}
    if own.accuracy is not None:
        columns[f"{loss}_accuracy"] = own.accuracy
    return columns


def train_alone(
    experiment: Experiment, problem: ScoringProblem, merges: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Each client's own model (C, p), from nobody's training rows but its own; and its epochs, 0 if at the optimum.

    Of more than MOST_OPTIMA clients, all are trained.
    """
    work = experiment.strategy.work
    often = max(1.0, float(merges.mean()))
    own: dict[int, np.ndarray | None] = {}
    if problem.num_clients <= MOST_OPTIMA:
        own = {client: _optimum(problem, client) for client in range(problem.num_clients)}
    left = [client for client in range(problem.num_clients) if own.get(client) is None]
    models = np.tile(problem.init(experiment.seed, how=experiment.init), (problem.num_clients, 1))
    if left:
        key = purpose_key(experiment.seed, "alone")
        keys = [draw_key(key, client, 0) for client in left]
        longer = replace(work, epochs=round(work.epochs * often), proximal=0.0, start="server")
        if work.steps is not UNSET:
            longer = replace(longer, steps=round(work.steps * often))
        models[left] = problem.local_train_many(Jobs(models[left], left, [longer] * len(left), keys), threads)
    for client, model in own.items():
        if model is not None:
            models[client] = model
    spent = np.zeros(problem.num_clients, np.int64)
    spent[left] = [_epochs(longer, int(problem.num_examples[client])) for client in left]
    return models, spent


def _epochs(work: Work, num_examples: int) -> int:
    """Epochs that are begun."""
    return -(-work.count_steps(num_examples) // -(-num_examples // work.batch_size))


def _optimum(problem: ScoringProblem, client: int) -> np.ndarray | None:
    try:
        return problem.client_optimum(client)
    except DataError:  # too badly scaled to be found; then it is trained
        return None


def effective_weights(events: Iterable[Event], num_clients: int) -> np.ndarray:
    """Each client's share of all weights that merges gave, by the journal: its weight in what is minimised.

    Where every client's latest model is averaged (`latest_average`), a client has its weight in that average
    after its first merge, however many follow.
    """
    given, latest = np.zeros(num_clients), np.zeros(num_clients)
    for merge in recorded_merges(events):
        clients = [update.client for update in merge.updates]
        np.add.at(given, clients, np.abs([update.weight for update in merge.updates]))
        if merge.rule == "latest_average":
            latest[clients] = merge.settings["shares"]
    weights_of = latest if latest.any() else given
    return np.asarray(weights_of / max(weights_of.sum(), np.finfo(np.float64).tiny))
