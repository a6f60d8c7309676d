"""A population: so many clients that their rows are made when they train, and none is kept."""

from __future__ import annotations

from math import isfinite
from typing import Protocol, runtime_checkable

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import purpose_key
from asyncfed.core.record import Config
from asyncfed.data.clients import Clients
from asyncfed.data.data_source import DataRequest, DataSource, PreparedData
from asyncfed.data.generated_clients import GeneratedClients
from asyncfed.data.random_streams import keyed
from asyncfed.data.splits import IID
from asyncfed.data.table import float_dtype
from asyncfed.kernels.drawn_sizes import DrawnSizes
from asyncfed.registry import register

MOST_ROWS_AT_ONCE = 50_000_000
"""Rows times features up to which a population is written out as a table, where something needs all of its rows."""

LARGEST_CLIENT = 1_000_000
"""Rows that a client may have at most."""


@runtime_checkable
class MakesRowsLate(DataSource, Protocol):
    """Data whose clients' rows are made when they train, and need not be held."""

    def virtual_clients(self, request: DataRequest) -> GeneratedClients:
        """The clients, without their rows."""


@register("data")
class Population(Config, tag_field="kind", tag="population"):
    """Clients whose rows follow from the seed and their number, made when they train: a hundred million cost no memory.

    Client c has weights `w_c = w + heterogeneity * ξ_c` and a centre `m_c = shift * η_c`, ξ_c and η_c standard normal.
    Its features are uniform around the centre with variance 1, and its targets

        y = w_c . x + bias + noise * ε,     for a classifier the sign of that

    The weights w are standard normal. A client has at least `rows` rows; with `most_rows`, at least k of them with
    probability `(rows / k)**exponent`, k up to `most_rows`. A model is measured on some of the clients, see
    `docs/population.md`. There is no split and no holdout: the law says who has what, and rows to test on are drawn.

    Args:
        num_features: features of a row, at least 1.
        rows: the rows of a client, or with `most_rows` the fewest, at least 1.
        most_rows: the rows of the largest clients; None: all have `rows`.
        exponent: how fast large clients become rare, above 0.
        heterogeneity: how much clients' weights differ, 0 or more.
        shift: how much clients' features differ, 0 or more.
        noise: standard deviation of a target around its response, 0 or more.
        bias: the response where all features are 0, finite.
        measured_clients: on how many clients a model is measured, at least 1.

    >>> people = Population(rows=3).virtual_clients(DataRequest(num_clients=10**8))
    >>> x, y, offsets = people.pack([99_999_999])
    >>> x.shape, offsets.tolist()
    ((3, 10), [0, 3])
    """

    num_features: int = 10
    rows: int = 20
    most_rows: int | None = None
    exponent: float = 1.5
    heterogeneity: float = 0.5
    shift: float = 0.0
    noise: float = 0.5
    bias: float = 1.0
    measured_clients: int = 1000

    def __post_init__(self) -> None:
        for name in ("num_features", "rows", "measured_clients"):
            if getattr(self, name) < 1:
                raise ConfigError(f"data.{name} is {getattr(self, name)}; it must be at least 1.")
        most = self.rows if self.most_rows is None else self.most_rows
        if not self.rows <= most <= LARGEST_CLIENT:
            raise ConfigError(
                f"data.rows is {self.rows} and data.most_rows {self.most_rows}; a client has at least the first and at "
                f"most the second, which may be up to {LARGEST_CLIENT:,}."
            )
        if not (isfinite(self.exponent) and self.exponent > 0):
            raise ConfigError(f"data.exponent is {self.exponent}; it must be a positive number.")
        for name in ("heterogeneity", "shift", "noise"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise ConfigError(f"data.{name} is {getattr(self, name)}; it must be zero or a positive number.")
        if not isfinite(self.bias):
            raise ConfigError(f"data.bias is {self.bias}; it must be a finite number.")

    @property
    def names_clients(self) -> bool:
        """False: there are as many clients as the experiment says."""
        return False

    def virtual_clients(self, request: DataRequest) -> GeneratedClients:
        """The clients of the request's seed, without their rows."""
        from asyncfed.kernels.population_rows import RowLaw

        _check_request(request)
        most = self.rows if self.most_rows is None else self.most_rows
        bounds = 1.0 - (self.rows / np.arange(self.rows + 1, most + 1)) ** self.exponent
        sizes = DrawnSizes(request.split_clients, self.rows, bounds, purpose_key(request.seed, "population sizes"))
        weights = keyed(request.seed, "data.population").standard_normal(self.num_features)
        law = RowLaw(
            weights, float(self.bias), float(self.heterogeneity), float(self.shift), float(self.noise), request.labels
        )
        return GeneratedClients(sizes, law, request.seed, float_dtype(request.dtype), self.measured_clients)

    def prepare(self, request: DataRequest) -> PreparedData:
        """All rows of all clients in arrays, for what needs them; refused where they are too many."""
        people = self.virtual_clients(request)
        cells = people.num_clients * people.sizes.mean * people.num_features
        if cells > MOST_ROWS_AT_ONCE:
            raise ConfigError(
                f"This needs the rows of all {people.num_clients:,} clients in arrays, about {cells:.2g} numbers; the "
                f"limit is {MOST_ROWS_AT_ONCE:,}. Use a smaller population, or do without it: docs/population.md says "
                "what works at any size."
            )
        x, y, offsets = people.pack(range(people.num_clients))
        return PreparedData(Clients(x, y, offsets, people.labels))


def _check_request(request: DataRequest) -> None:
    if request.split != IID():
        raise ConfigError(
            "The split is about rows that are assigned to clients, and those of a population are made for each: leave "
            "it out, and set data.heterogeneity, data.shift or data.most_rows for clients that differ."
        )
    if request.holdout is not None:
        raise ConfigError(
            "A population draws rows to test on from the same law as those to train on: leave holdout out. "
            "data.measured_clients says of how many clients."
        )
    if request.classes:
        raise ConfigError("A population has targets that are numbers, or two classes. Use a linear model.")
