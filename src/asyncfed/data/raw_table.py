"""A raw table: columns with names and kinds, some values missing, before they become numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, TypeAlias

import numpy as np

from asyncfed.core.errors import DataError, did_you_mean

Kind: TypeAlias = Literal["number", "boolean", "date", "category"]
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?")
BOOLEANS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
FIRST_ROW = 2
"""Rows are counted as in a spreadsheet: the header is row 1."""


@dataclass(frozen=True, eq=False)
class Column:
    """Values of one kind. Numbers, booleans (0 and 1) and dates (days since 1970) are float64, NaN where missing.

    Args:
        kind: "number", "boolean", "date" or "category".
        values: shape (rows,). Of a category they are whole numbers that point into `levels`, −1 where missing.
        levels: the names that a category may hold; empty for other kinds.
    """

    kind: Kind
    values: np.ndarray
    levels: tuple[str, ...] = ()

    @property
    def is_category(self) -> bool:
        """Whether the values are names."""
        return self.kind == "category"

    @property
    def missing(self) -> np.ndarray:
        """True where there is no value."""
        absent: np.ndarray = self.values < 0 if self.is_category else np.isnan(self.values)
        return absent

    def take(self, rows: np.ndarray) -> Column:
        """The values of these rows."""
        return Column(self.kind, self.values[rows], self.levels)

    def as_category(self) -> Column:
        """The same values as names: a number is named as one would write it.

        >>> Column("number", np.array([1.0, 2.5, np.nan, 1.0])).as_category().levels
        ('1', '2.5')
        """
        if self.is_category:
            return self
        distinct, codes = np.unique(self.values, return_inverse=True)
        known = distinct[~np.isnan(distinct)]
        codes = np.where(np.isnan(self.values), -1, codes.ravel()).astype(np.int32)
        return Column("category", codes, tuple(f"{value:.15g}" for value in known))


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns by name, all of the same length.

    Args:
        columns: the columns by name.
        notes: how the file was written, where one should know; sentences for people.

    >>> table = RawTable.from_columns({"age": [30, None, 41], "town": ["A", "B", "A"]})
    >>> table.num_rows, table["town"].levels, table["age"].missing
    (3, ('A', 'B'), array([False,  True, False]))
    """

    columns: Mapping[str, Column]
    notes: tuple[str, ...] = ()

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> RawTable:
        """The table of anything that gives arrays by name: a dict of lists, or a data frame.

        Args:
            columns: numbers, booleans, dates or texts by name; None and NaN are missing values.

        Returns:
            The raw table.
        """
        return cls({str(name): column_of(str(name), values) for name, values in columns.items()})

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return next((len(column.values) for column in self.columns.values()), 0)

    def only(self, names: Iterable[str]) -> RawTable:
        """The table of these columns."""
        return RawTable({name: self.columns[name] for name in names})

    def take(self, rows: np.ndarray) -> RawTable:
        """The table of these rows."""
        return RawTable({name: column.take(rows) for name, column in self.columns.items()})

    def require(self, names: Iterable[str], what: str) -> None:
        """Refuse names that are not columns, and suggest the nearest; `what` says what the column is for."""
        for name in names:
            if name not in self.columns:
                raise DataError(f'There is no column "{name}" ({what}). {did_you_mean(name, self.columns)}')


# ---- from arrays ---------------------------------------------------------------------------------------------------


def column_of(name: str, values: Any) -> Column:
    """The column that an array stands for, by its dtype."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f'Column "{name}" has shape {array.shape}; a column has one value a row.')
    if array.dtype.kind == "b":
        return Column("boolean", array.astype(np.float64))
    if array.dtype.kind in "iuf":
        return Column("number", require_finite_numbers(name, array.astype(np.float64)))
    if array.dtype.kind == "M":
        days = (array - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
        return Column("date", np.asarray(days, np.float64))
    return _of_objects(name, [None if _is_nothing(value) else value for value in array.tolist()])


def _of_objects(name: str, values: list[Any]) -> Column:
    known = [value for value in values if value is not None]
    if all(isinstance(value, bool | int | float) for value in known):
        numbers = np.array([np.nan if value is None else float(value) for value in values], np.float64)
        return Column("number", require_finite_numbers(name, numbers))
    if all(isinstance(value, date | datetime) for value in known):
        return column_of(name, np.array(values, dtype="datetime64[s]"))
    if not all(isinstance(value, str) for value in known):
        kinds = ", ".join(sorted({type(value).__name__ for value in known}))
        raise DataError(f'Column "{name}" mixes values of the types {kinds}; make them all of one kind.')
    texts = ["" if value is None else value for value in values]
    return _categories(texts, {text for text in texts if text})


def _categories(texts: Sequence[str], known: Iterable[str]) -> Column:
    levels = tuple(sorted({text.strip() for text in known}))
    place = {level: code for code, level in enumerate(levels)}
    code_of = {text: place[text.strip()] for text in known}
    return Column("category", np.array([code_of.get(text, -1) for text in texts], np.int32), levels)


def _is_nothing(value: Any) -> bool:
    return value is None or value != value


def require_finite_numbers(name: str, numbers: np.ndarray) -> np.ndarray:
    """The numbers; infinite ones are refused, with their row."""
    bad = np.flatnonzero(np.isinf(numbers))
    if len(bad):
        raise DataError(f'Column "{name}" is infinite in row {bad[0] + FIRST_ROW}; leave the value out or correct it.')
    return numbers
