"""What one should know of a table before learning from it: one sentence each, or an error that says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from asyncfed.core.errors import DataError
from asyncfed.data.federated_summary import TableSchema
from asyncfed.data.raw_table import FIRST_ROW, Column, RawTable
from asyncfed.data.reading.writing_notes import name_some
from asyncfed.data.target_kind import kind_of_target

LARGEST = 1e100
"""Squares of larger values, summed over rows, may be infinite."""

FAR = 1e6
"""A value so many interquartile ranges from the median decides the scale of its column alone."""

LEAST_ROWS = 20
"""Of fewer rows, different values say nothing."""

ID_NAME = re.compile(r"(^|[_\s.-])(id|ids|index|idx|key|uuid|guid|nr|no|number|row)$|[a-z]I[dD]$")


def diagnose(raw: RawTable, schema: TableSchema) -> list[str]:
    """What to say about a table's columns.

    Args:
        raw: the table.
        schema: the target and the features.

    Returns:
        Sentences for people. Values beyond 1e100, which no mean and spread survive, are refused.
    """
    for name in (schema.target, *schema.features):
        _require_moderate(name, raw[name])
    notes = []
    if not schema.labels and not schema.classes and kind_of_target(raw[schema.target]) == "0/1 numbers":
        notes.append(
            f"the target {schema.target} has two values, as classes have, but this problem is a regression; "
            "--problem logistic tells classes apart"
        )
    notes += _list("true and false became 1 and 0", _of_kind(raw, schema, "boolean"))
    notes += _list("dates became days since 1970", _of_kind(raw, schema, "date"))
    numbers = _of_kind(raw, schema, "number")
    for name in numbers:
        if _identifies_rows(name, raw[name]):
            notes.append(
                f"{name} looks like an identifier: a different whole number in each row. Leave it out with "
                f"--set 'data.ignore=[\"{name}\"]'"
            )
    notes += [note for name in numbers if (note := _outliers(name, raw[name]))]
    return notes


def _of_kind(raw: RawTable, schema: TableSchema, kind: str) -> list[str]:
    return [name for name in schema.features if raw[name].kind == kind]


def _list(words: str, names: list[str]) -> list[str]:
    return [f"{words}: {name_some(names)}"] if names else []


def _require_moderate(name: str, column: Column) -> None:
    if column.is_category or not len(column.values):
        return
    for extreme in (np.fmax.reduce(column.values), np.fmin.reduce(column.values)):
        if abs(extreme) > LARGEST:
            row = int(np.flatnonzero(column.values == extreme)[0]) + FIRST_ROW
            raise DataError(
                f'Column "{name}" is {extreme:g} in row {row}; values beyond {LARGEST:g} cannot be scaled. Correct it, '
                'or name the text in data.missing if it means "no value".'
            )


def _identifies_rows(name: str, column: Column) -> bool:
    """Whether all values are different whole numbers that rise or fall, fill a range, or are called an identifier."""
    values = column.values
    if len(values) < LEAST_ROWS or not _whole(values[:LEAST_ROWS]) or not _whole(values):
        return False
    steps = np.diff(values)
    if bool((steps > 0).all() or (steps < 0).all()):
        return True
    low = values.min()
    width = values.max() - low + 1
    if width < len(values):
        return False
    if width <= 2 * len(values):
        return int(np.bincount((values - low).astype(np.int64)).max()) == 1
    return ID_NAME.search(name) is not None and len(np.unique(values)) == len(values)


def _whole(values: np.ndarray) -> bool:
    return bool((values == np.floor(values)).all())  # NaN is not


def _outliers(name: str, column: Column) -> str:
    known = column.values[:: max(1, len(column.values) // 20_000)]
    known = known[~np.isnan(known)]
    if len(known) < LEAST_ROWS:
        return ""
    low, middle, high = _quartiles(known)
    if high <= low:
        return ""
    extremes: Iterable[float] = (np.fmax.reduce(column.values), np.fmin.reduce(column.values))
    farthest = max(extremes, key=lambda value: abs(value - middle))
    if abs(farthest - middle) <= FAR * (high - low):
        return ""
    row = int(np.flatnonzero(column.values == farthest)[0]) + FIRST_ROW
    return (
        f"{name} is {farthest:g} in row {row}, though half of its values lie between {low:g} and {high:g}: such values "
        "decide its scale; correct them, or name them in data.missing"
    )


def _quartiles(values: np.ndarray) -> tuple[float, float, float]:
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return float(low), float(middle), float(high)
