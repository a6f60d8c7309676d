"""Experiments on tables: a file of one's own, or data that come with a package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.data import BreastCancer, DataSource, Diabetes, Digits, Flights, Holdout, TableFile, column_names
from asyncfed.delays import DelayDescription, stragglers
from asyncfed.experiment import Experiment, changed
from asyncfed.presets.named_strategies import strategy_named
from asyncfed.problems.linear import LinearModel
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.schedules import ConstantRate

BUILT_IN: dict[str, tuple[str, DataSource, str]] = {
    "flights": ("flights from New York in 2013, by airline: how late will they arrive?", Flights(), "ridge"),
    "diabetes": ("442 patients: how far does the disease go in a year?", Diabetes(), "ridge"),
    "breast_cancer": ("569 tumours: benign or malignant?", BreastCancer(), "svm"),
    "digits": ("1,797 handwritten digits: a zero or not?", Digits(), "logistic"),
}
"""Data by name: what they are, and the problem they are for."""

PROBLEMS: dict[str, LinearModel] = {
    "least_squares": LinearModel(loss="least_squares"),
    "ridge": LinearModel(loss="least_squares", l2=0.001, penalize_bias=False),
    "logistic": LinearModel(loss="logistic", l2=0.001, penalize_bias=False),
    "svm": LinearModel(loss="hinge", l2=0.001, penalize_bias=False),
    "squared_hinge": LinearModel(loss="squared_hinge", l2=0.001, penalize_bias=False),
}


def table(
    data: str | DataSource,
    *,
    target: str | None = None,
    client_column: str | None = None,
    problem: str | None = None,
    strategy: str | Strategy | None = "fedasync",
    fraction: float = 0.5,
    num_clients: int | None = None,
    rounds: int = 50,
    seed: int = 0,
    delays: DelayDescription | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Experiment:
    """A table of your own, .csv or .parquet, or one of `BUILT_IN`; 15 % of each client's rows validate, 15 % test.

    Features are scaled, so that a rate of 0.01 suits most tables; one local epoch a ticket.

    Args:
        data: the path of a file, a name of `BUILT_IN`, or a data source.
        target: the column to predict; for files only.
        client_column: the column that says which client owns a row. Without it, rows are assigned at random.
        problem: one of `PROBLEMS`; None for the one the data are for.
        strategy: a strategy, or one by name; None leaves the default and does not count the clients: choose one with
            `table_strategy` when the data are prepared.
        fraction: the share of the clients at work at once, above 0 and at most 1.
        num_clients: how many clients rows are assigned to, 10 if None; leave it out with a `client_column`.
        rounds: how many rounds, 1 or more.
        seed: of everything random.
        delays: the clock; None for stragglers.
        settings: dotted keys set anew before the clients are counted, such as `{"data.ignore": ["id"]}`.

    Returns:
        The experiment.
    """
    chosen, usual = _data_named(data, target, client_column)
    problem = problem or usual
    if problem not in PROBLEMS:
        raise ConfigError(f'There is no problem "{problem}". {did_you_mean(problem, PROBLEMS)}')
    if not 0 < fraction <= 1:
        raise ConfigError(f"fraction is {fraction}; it must be above 0 and at most 1.")
    experiment = Experiment(
        name=table_name(data) if isinstance(data, str) else "table",
        seed=seed,
        num_clients=num_clients,
        data=chosen,
        holdout=Holdout(),
        model=PROBLEMS[problem],
        delays=stragglers() if delays is None else delays,
        budget=Budget(rounds=rounds),
    )
    experiment = changed(experiment, dict(settings or {}))
    if strategy is None:
        return experiment
    if isinstance(strategy, str):
        strategy = table_strategy(strategy, fraction, experiment.count_clients())
    return replace(experiment, strategy=strategy)


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


def table_strategy(name: str, fraction: float, num_clients: int) -> Strategy:
    """The strategy of `table` by its name: one local epoch at a constant rate.

    Args:
        name: as for `strategy_named`.
        fraction: the share of the clients at work at once, above 0 and at most 1.
        num_clients: how many clients there are.

    Returns:
        The strategy.
    """
    return strategy_named(name, max(1, int(fraction * num_clients)), Work(), ConstantRate())


def _data_named(data: str | DataSource, target: str | None, client_column: str | None) -> tuple[DataSource, str]:
    """The data, and the problem they are for."""
    if not isinstance(data, str):
        return data, "ridge"
    if data not in BUILT_IN and ("." in data or Path(data).exists()):
        if target is None:
            columns = ", ".join(column_names(data))
            raise ConfigError(f"Which column of {data} is to be predicted? Name it with --target: {columns}.")
        return TableFile(path=data, target=target, client_column=client_column), "ridge"
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
