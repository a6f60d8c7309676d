"""A model to deploy: what was learnt on a table, with what has to be done to a new row before it can be predicted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from asyncfed.core.errors import ConfigError, DataError, did_you_mean
from asyncfed.core.record import Record, ValidationError, from_plain, kind_of, to_plain
from asyncfed.data import RawTable, prepare_features
from asyncfed.data.federated_summary import PreparedColumn, PreparedTarget
from asyncfed.data.raw_table import MISSING
from asyncfed.data.table_reader import read_table
from asyncfed.experiment import Experiment

FORMAT = 1
PROBABILITIES = ("logistic", "softmax")
"""Losses whose margins are log-odds."""


class TableModel(Record):
    """A linear model with all it needs to predict rows of a table. It is written as JSON, and holds no row.

    Args:
        format: of the file; this version reads 1.
        name: the experiment's name.
        loss: what was minimised: least_squares, logistic, softmax, hinge, …
        columns: what becomes of each column of a row.
        target: what was predicted, with its classes, if it has any.
        features: the name of each weight but the bias.
        fit_bias: whether the last weight of each margin is its bias.
        weights: of each margin (one, or one for each class), a weight for each feature, then the bias.
        clients: of clients with a model of their own, its weights, by the client's name.
    """

    format: int
    name: str
    loss: str
    columns: tuple[PreparedColumn, ...]
    target: PreparedTarget
    features: tuple[str, ...]
    fit_bias: bool
    weights: tuple[tuple[float, ...], ...]
    clients: dict[str, tuple[tuple[float, ...], ...]]

    def save(self, path: Path | str) -> None:
        """Write it as JSON."""
        try:
            Path(path).write_text(json.dumps(to_plain(self), indent=1) + "\n")
        except OSError as error:
            raise ConfigError(f"{path} cannot be written ({error.strerror}). Choose another file.") from error

    @classmethod
    def load(cls, path: Path | str) -> TableModel:
        """Read what `save` wrote.

        Args:
            path: the file.

        Returns:
            The model.

        Raises:
            ConfigError: the file cannot be read, or is no model.
        """
        try:
            found = from_plain(json.loads(Path(path).read_text()), TableModel)
        except (OSError, ValueError, ValidationError, RecursionError) as error:
            raise ConfigError(
                f"{path} is no model ({error}). Write one with `asyncfed export RUN model.json --to model`."
            ) from error
        if found.format != FORMAT:
            raise ConfigError(f"{path} is of format {found.format}, and this version reads {FORMAT}. Export it again.")
        return found

    def margins(self, rows: RawTable, client: str | None = None) -> np.ndarray:
        """The linear margins of rows, (n, K); K is 1 unless there are several classes.

        Args:
            rows: a table with the columns that the model was learnt from; the target is not needed.
            client: the name of a client with a model of its own; None for the common one.

        Returns:
            The margins.
        """
        if client is not None and client not in self.clients:
            known = did_you_mean(client, self.clients) if self.clients else "It holds the common model alone."
            raise ConfigError(f'There is no model of client "{client}" in it. {known}')
        weights = np.array(self.weights if client is None else self.clients[client])
        x = prepare_features(rows, self.columns)
        bias = weights[:, -1] if self.fit_bias else 0.0
        found: np.ndarray = x @ weights[:, : x.shape[1]].T + bias
        return found

    def predict(self, rows: RawTable, client: str | None = None) -> np.ndarray:
        """What the target of each row will be: numbers in its own unit, or names of classes."""
        margins, target = self.margins(rows, client), self.target
        if target.classes:
            return np.asarray(np.array(target.classes)[margins.argmax(axis=1)])
        if target.labels:
            return np.asarray(np.where(margins[:, 0] > 0, target.positive, target.negative))
        numbers: np.ndarray = margins[:, 0] * target.scale + target.mean
        return numbers

    def probabilities(self, rows: RawTable, client: str | None = None) -> dict[str, np.ndarray]:
        """The probability of each class by its name; empty where the loss gives none."""
        if self.loss not in PROBABILITIES:
            return {}
        margins = self.margins(rows, client)
        if not self.target.classes:
            margins = np.column_stack([np.zeros(len(margins)), margins[:, 0]])
        odds = np.exp(margins - margins.max(axis=1, keepdims=True))
        shares = odds / odds.sum(axis=1, keepdims=True)
        names = self.target.classes or (self.target.negative, self.target.positive)
        return dict(zip(names, shares.T, strict=True))


def table_model(experiment: Experiment, params: np.ndarray, own: dict[str, np.ndarray] | None = None) -> TableModel:
    """The model of a run on a table, ready to be saved.

    Args:
        experiment: the run's, whose table is read again for what becomes of its columns.
        params: the run's model, (p,).
        own: clients' models of their own by name, (p,) each.

    Returns:
        The model.

    Raises:
        ConfigError: the run was not made on a table of columns.
    """
    preparation, model = experiment.prepare_data().preparation, experiment.model
    loss = str(getattr(model, "loss", None) or kind_of(type(model)))
    if preparation is None or not hasattr(model, "fit_bias"):
        raise ConfigError(
            "This run was not made on a table with names of columns, so there is nothing to predict new rows by; "
            "`run.params` is its model."
        )
    features, fit_bias = preparation.feature_names, bool(model.fit_bias)

    def weights_of(flat: np.ndarray) -> tuple[tuple[float, ...], ...]:
        rows = np.asarray(flat, np.float64).reshape(-1, len(features) + fit_bias)
        return tuple(tuple(row) for row in rows.tolist())

    clients = {name: weights_of(flat) for name, flat in (own or {}).items()}
    return TableModel(
        FORMAT,
        experiment.name,
        loss,
        preparation.columns,
        preparation.target,
        features,
        fit_bias,
        weights_of(params),
        clients,
    )


def predicted_columns(model: TableModel, rows: RawTable, client: str | None = None) -> dict[str, list[object]]:
    """What is written for each row: its row number in the file, the prediction, and the probabilities of classes."""
    if not rows.num_rows:
        raise DataError("The table has no rows to predict. Give it a header and at least one row.")
    columns: dict[str, list[object]] = {
        "row": list(range(2, rows.num_rows + 2)),
        model.target.name: model.predict(rows, client).tolist(),
    }
    for name, shares in model.probabilities(rows, client).items():
        columns[f"probability of {name}"] = shares.tolist()
    return columns


def read_rows(path: str) -> RawTable:
    """The rows of a table's file or folder, without a target.

    Args:
        path: the file or folder.

    Returns:
        The rows.
    """
    return read_table(path, MISSING, ())
