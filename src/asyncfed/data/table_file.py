"""TableFile: data from a table of the user's own, in a file."""

from __future__ import annotations

from typing import Literal

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.data.data_source import DataRequest, PreparedData
from asyncfed.data.federated_summary import TableSchema
from asyncfed.data.preparation import ColumnRoles, prepare_raw_table
from asyncfed.data.raw_table import MISSING, RawTable
from asyncfed.data.table_reader import read_table
from asyncfed.data.target_kind import TargetKind, kind_of_target
from asyncfed.registry import register


def column_names(path: str) -> tuple[str, ...]:
    """The names of a table's columns, in their order.

    Args:
        path: the file, or the folder.

    Returns:
        The names.
    """
    return tuple(read_table(path, MISSING, ()).columns)


@register("data")
class TableFile(Config, tag_field="kind", tag="table_file"):
    """A table of your own, .csv or .parquet. Each client is summarised and prepared by itself.

    Args:
        path: the file, or a folder of files with the same columns, see `find_table_files`.
        target: the column to predict.
        client_column: the column that names the owner of a row; None: the split assigns rows.
        features: the columns to learn from; empty: all but the target, the client column and those in `ignore`.
        ignore: columns that are no features.
        categories: columns of numbers that are names, such as codes.
        missing: texts that mean "no value".
        min_level_count: a level of a category that occurs fewer times over all clients counts as "other"; at least 1.
        max_levels: the levels kept of a category, the most frequent first; at least 1.
        scale: True scales features to mean 0 and standard deviation 1 over all clients.
        target_scaling: True scales a regression target likewise.
        positive: the class that is +1, all others being -1; None: the larger of two.
        min_rows: the least rows of a client, at least 2.
        small_clients: "refuse" or "leave_out" clients with fewer rows.
        sparse: True keeps rows sparse, for a linear model on categories of many levels; left out, they are an array.

    >>> TableFile(path="shops.csv", target="sold", client_column="shop").names_clients
    True
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
    sparse: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        for name, least in (("min_level_count", 1), ("max_levels", 1), ("min_rows", 2)):
            if getattr(self, name) < least:
                raise ConfigError(f"data.{name} is {getattr(self, name)}; it must be at least {least}.")
        if self.target == self.client_column:
            raise ConfigError(
                f'data.target and data.client_column are both "{self.target}"; the column to predict cannot also '
                "name the owner of a row. Name another column with --target or --client-column."
            )
        used = {self.target, self.client_column} & {*self.features, *self.ignore}
        if used:
            raise ConfigError(
                f'data.features or data.ignore names "{used.pop()}", which is the target or the client column.'
            )

    @property
    def names_clients(self) -> bool:
        """Whether there is a client column."""
        return self.client_column is not None

    def raw(self) -> RawTable:
        """The columns of the file, which is read once: the same file is not read again until it changes."""
        return read_table(self.path, self.missing, self.categories)

    def target_kind(self) -> TargetKind:
        """Whether the target is a number or classes, see `kind_of_target`; reads the file."""
        raw = self.raw()
        raw.require([self.target], "the target")
        return kind_of_target(raw[self.target])

    def prepare(self, request: DataRequest) -> PreparedData:
        """The clients of the table; reads the file."""
        raw = self.raw()
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
            request.classes,
        )
        roles = ColumnRoles(schema, self.client_column, self.small_clients, self.sparse is True)
        return prepare_raw_table(raw, roles, request)
