"""Where data come from: the paper's generators, a table in a file, or a data set of an installed package."""

from __future__ import annotations

from typing import Literal, TypeAlias

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.data.built_in import BreastCancer, Diabetes, Digits, Flights
from asyncfed.data.federated_summary import TableSchema
from asyncfed.data.generators import PaperClassification, PaperRegression
from asyncfed.data.preparation import ColumnRoles, DataRequest, PreparedData, prepare_raw_table
from asyncfed.data.raw_table import MISSING
from asyncfed.data.table_reader import read_table


class TableFile(Config, tag_field="kind", tag="table_file"):
    """A table of your own, .csv or .parquet. Each client is summarised and prepared by itself.

    `features` empty means every column but the target, the client column and those in `ignore`.
    """

    path: str
    target: str
    client_column: str | None = None
    features: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    missing: tuple[str, ...] = MISSING
    min_level_count: int = 5
    max_levels: int = 50
    scale: bool = True
    target_scaling: bool = False
    positive: str | None = None
    min_rows: int = 2
    small_clients: Literal["refuse", "leave_out"] = "refuse"

    def __post_init__(self) -> None:
        for name, least in (("min_level_count", 1), ("max_levels", 1), ("min_rows", 2)):
            if getattr(self, name) < least:
                raise ConfigError(f"data.{name} is {getattr(self, name)}; it must be at least {least}.")
        used = {self.target, self.client_column} & {*self.features, *self.ignore}
        if used:
            raise ConfigError(
                f'data.features or data.ignore names "{used.pop()}", which is the target or the client column.'
            )

    @property
    def names_clients(self) -> bool:
        """Whether the data say who owns which row."""
        return self.client_column is not None

    def prepare(self, request: DataRequest) -> PreparedData:
        raw = read_table(self.path, self.missing, self.categories)
        raw.require(self.ignore, "named in data.ignore")
        not_features = {self.target, self.client_column, *self.ignore}
        features = self.features or tuple(name for name in raw.columns if name not in not_features)
        schema = TableSchema(
            self.target,
            features,
            request.labels,
            self.min_level_count,
            self.max_levels,
            self.scale,
            self.target_scaling,
            self.positive,
            self.min_rows,
        )
        return prepare_raw_table(raw, ColumnRoles(schema, self.client_column, self.small_clients), request)


Data: TypeAlias = PaperRegression | PaperClassification | TableFile | Flights | BreastCancer | Diabetes | Digits
