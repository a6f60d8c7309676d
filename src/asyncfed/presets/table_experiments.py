"""Experiments on tables: a file of one's own, or data that come with a package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as dataclass_replace
from pathlib import Path
from typing import Any, NamedTuple

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import replace
from asyncfed.core.types import Budget
from asyncfed.data import (
    BreastCancer,
    DataSource,
    Diabetes,
    Digits,
    Flights,
    Holdout,
    PreparedData,
    TableFile,
    TargetKind,
    column_names,
)
from asyncfed.delays import DelayDescription, stragglers
from asyncfed.experiment import Experiment, changed
from asyncfed.presets.table_defaults import (
    STRATEGY,
    default_budget,
    default_delays,
    default_evaluation,
    default_penalty,
    default_stopping,
    default_strategy,
)
from asyncfed.problems.linear import LinearModel
from asyncfed.problems.protocol import Problem
from asyncfed.problems.softmax import SoftmaxModel
from asyncfed.strategies.protocol import Strategy

BUILT_IN: dict[str, tuple[str, DataSource, str]] = {
    "flights": ("flights from New York in 2013, by airline: how late will they arrive?", Flights(), "ridge"),
    "diabetes": ("442 patients: how far does the disease go in a year?", Diabetes(), "ridge"),
    "breast_cancer": ("569 tumours: benign or malignant?", BreastCancer(), "logistic"),
    "digits": ("1,797 handwritten digits: a zero or not?", Digits(), "logistic"),
}
"""Data by name: what they are, and the problem they are for."""

PROBLEMS: dict[str, LinearModel | SoftmaxModel] = {
    "least_squares": LinearModel(loss="least_squares"),
    "ridge": LinearModel(loss="least_squares", l2=0.001, penalize_bias=False),
    "logistic": LinearModel(loss="logistic", l2=0.001, penalize_bias=False),
    "softmax": SoftmaxModel(l2=0.001, penalize_bias=False),
    "svm": LinearModel(loss="hinge", l2=0.001, penalize_bias=False),
    "squared_hinge": LinearModel(loss="squared_hinge", l2=0.001, penalize_bias=False),
}
"""Problems by name. On a table the penalty, where there is one, is `default_penalty` unless `model.l2` is set."""

SUITING: dict[TargetKind, str] = {
    "number": "ridge",
    "0/1 numbers": "logistic",
    "two classes": "logistic",
    "several classes": "softmax",
}
"""The problem for a target, where nobody names one."""


FROM_DATA = ("strategy", "stopping", "evaluation")
"""What of an experiment follows from its data."""


class PreparedTable(NamedTuple):
    """An experiment on a table, its data, prepared once, and the problem they make."""

    experiment: Experiment
    data: PreparedData
    problem: Problem


def table(data: str | DataSource, **how: Any) -> Experiment:
    """An experiment on a table of your own, or on one of `BUILT_IN`.

    Args:
        data: the path of a file or folder, a name of `BUILT_IN`, or a data source.
        how: as for `prepare_table`: target, client_column, problem, strategy, fraction, num_clients, rounds, seed,
            delays, settings.

    Returns:
        The experiment. `prepare_table` also gives its data, so that they need not be prepared again.

    >>> table("diabetes", seed=3).model.loss
    'least_squares'
    """
    return prepare_table(data, **how).experiment


def prepare_table(
    data: str | DataSource,
    *,
    target: str | None = None,
    client_column: str | None = None,
    problem: str | None = None,
    strategy: str | Strategy = STRATEGY,
    fraction: float = 0.5,
    num_clients: int | None = None,
    rounds: int | None = None,
    seed: int = 0,
    delays: DelayDescription | None = None,
    settings: Mapping[str, Any] | None = None,
) -> PreparedTable:
    """A table of your own, .csv or .parquet, or one of `BUILT_IN`; 15 % of each client's rows validate, 15 % test.

    Features are scaled. The penalty, the learning rate, the number of local steps and when the run ends follow from the
    data: see `presets/table_defaults.py`.

    Args:
        data: the path of a file or folder, a name of `BUILT_IN`, or a data source.
        target: the column to predict; for files only.
        client_column: the column that says which client owns a row. Without it, rows are assigned at random.
        problem: one of `PROBLEMS`; None for the one that suits the target.
        strategy: a strategy, or one by name.
        fraction: the share of the clients at work at once, above 0 and at most 1.
        num_clients: how many clients rows are assigned to, 10 if None; leave it out with a `client_column`.
        rounds: how many rounds at most, 1 or more; None for so many that the run converges before.
        seed: of everything random.
        delays: the clock; None for stragglers, a ticket of the default local work taking 1 s, or 10 s.
        settings: dotted keys set anew before the data are prepared, such as `{"data.ignore": ["id"]}`.

    Returns:
        The experiment, its data and the problem.
    """
    chosen, usual = _data_named(data, target, client_column)
    settings = dict(settings or {})
    notes: list[str] = []
    if problem is None and usual is None and isinstance(chosen, TableFile):
        problem = _suiting_problem(chosen, notes)
    problem = problem or usual or "ridge"
    if problem not in PROBLEMS:
        raise ConfigError(f'There is no problem "{problem}". {did_you_mean(problem, PROBLEMS)}')
    experiment = Experiment(
        name=table_name(data) if isinstance(data, str) else "table",
        seed=seed,
        num_clients=num_clients,
        data=chosen,
        holdout=Holdout(),
        model=PROBLEMS[problem],
        delays=stragglers() if delays is None else delays,
        budget=default_budget() if rounds is None else Budget(rounds=rounds),
    )
    # What is about strategy, stopping and evaluation waits until they are known, which needs the data.
    first = {key: value for key, value in settings.items() if key.split(".")[0] not in FROM_DATA}
    experiment = changed(experiment, first)
    prepared = experiment.prepare_data()
    if "model.l2" not in settings and getattr(experiment.model, "l2", None):
        experiment = changed(experiment, {"model.l2": default_penalty(prepared)})
    if isinstance(strategy, str):
        strategy = default_strategy(strategy, fraction, prepared, experiment.model)
    experiment = replace(
        experiment,
        strategy=strategy,
        delays=default_delays(strategy.work) if delays is None else delays,
        stopping=default_stopping(prepared, experiment.model),
        evaluation=replace(default_evaluation(strategy, prepared), distance=False),
    )
    experiment = changed(experiment, settings)  # what was said has the last word
    prepared = dataclass_replace(prepared, notes=(*notes, *prepared.notes))
    return PreparedTable(experiment, prepared, experiment.problem(prepared))


def _suiting_problem(data: TableFile, notes: list[str]) -> str:
    """The problem for the target of this table; says which, and why."""
    kind = data.target_kind()
    problem = SUITING[kind]
    what = {"number": "a number", "0/1 numbers": "one of two numbers"}.get(kind, f"one of {kind}")
    notes.append(f"problem: {problem}, because {data.target} is {what}; another one: --problem")
    return problem


def table_name(data: str) -> str:
    """What an experiment on these data is called: the file's or folder's name without its ending.

    Args:
        data: the path of a file or folder, or a name of `BUILT_IN`.

    Returns:
        The name.

    >>> table_name("tables/shops.csv.gz"), table_name("flights")
    ('shops', 'flights')
    """
    return data.rstrip("/").rpartition("/")[2].partition(".")[0] or "table"


def _data_named(data: str | DataSource, target: str | None, client_column: str | None) -> tuple[DataSource, str | None]:
    """The data, and the problem they are for, if that is known before they are read."""
    if not isinstance(data, str):
        return data, None
    if data not in BUILT_IN and ("." in data or Path(data).exists()):
        if target is None:
            columns = ", ".join(column_names(data))
            raise ConfigError(f"Which column of {data} is to be predicted? Name it with --target: {columns}.")
        return TableFile(path=data, target=target, client_column=client_column), None
    if data not in BUILT_IN:
        raise ConfigError(
            f'There are no data "{data}". {did_you_mean(data, BUILT_IN)} A table of your own ends in .csv or .parquet.'
        )
    _, chosen, problem = BUILT_IN[data]
    if target is not None:
        raise ConfigError(f'The data "{data}" have a target of their own; leave --target out.')
    if client_column is not None:
        owners = ("carrier", "origin", "dest") if data == "flights" else ()
        if client_column not in owners:
            choice = f"choose from {', '.join(owners)}" if owners else "they name no clients; leave it out"
            raise ConfigError(f'The data "{data}" have no client column "{client_column}": {choice}.')
        chosen = replace(chosen, clients=client_column)
    return chosen, problem
