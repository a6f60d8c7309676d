"""Preparing tables without moving rows: two messages, one from every client and one back to all of them.

    client -> server   ClientSummary   how many rows; of each number its count, mean and sum of squares about the mean;
                                       of each category its levels and how often each occurs
    server -> clients  Preparation     means, spreads, levels: what each client applies to its own rows

Counts, means and sums of squares of all rows together follow exactly from those of the clients (Chan, Golub & LeVeque
1979), so scaling as if all rows lay in one place needs no row of any client. A summary holds no row; but a sum over
one row is that row, so a client needs at least `TableSchema.min_rows`, and at least 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from asyncfed.core.errors import DataError
from asyncfed.core.record import Record
from asyncfed.data.raw_table import Column, RawTable

MISSING_LEVEL = "missing"


class TableSchema(Record):
    """The columns to learn from: the target, the features, and how to treat them.

    Args:
        target: the column to predict.
        features: the columns to learn from, at least one.
        labels: True for classification: the target's classes become −1 and +1.
        min_level_count: a level that occurs fewer times over all clients becomes one level "other"; at least 1.
        max_levels: so do all but the most frequent so many levels; at least 1.
        scale: True scales features to mean 0 and standard deviation 1 over all rows.
        target_scaling: True scales a regression target likewise.
        positive: the class that is +1, the rest being −1; None: the larger of two.
        min_rows: the least rows of a client, at least 2.
        classes: True for a classifier of several classes: the target's classes become the numbers 0, 1, …, in order.
    """

    target: str
    features: tuple[str, ...]
    labels: bool
    min_level_count: int = 5
    max_levels: int = 50
    scale: bool = True
    target_scaling: bool = False
    positive: str | None = None
    min_rows: int = 2
    classes: bool = False

    @property
    def has_classes(self) -> bool:
        """Whether the target's values are classes, two or several."""
        return self.labels or self.classes


class Moments(Record):
    """Count, mean, and sum of squares about the mean, of the known values; and how many are missing."""

    count: int
    missing: int
    mean: float
    squares: float

    @classmethod
    def of(cls, values: np.ndarray) -> Moments:
        """The moments of these values, NaN being a missing one."""
        known = values[~np.isnan(values)]
        if not len(known):
            return cls(0, len(values), 0.0, 0.0)
        # About the first value: that the spread of equal values is exactly 0 must not be lost in rounding.
        gaps = known - known[0]
        mean = float(gaps.mean())
        squares = float(np.square(gaps - mean).sum())
        return cls(len(known), len(values) - len(known), float(known[0]) + mean, squares)

    def merge(self, other: Moments) -> Moments:
        """The moments of both together: with d the gap of the means, squares add up with d² n m / (n + m)."""
        missing = self.missing + other.missing
        if not self.count or not other.count:
            some = self if self.count else other
            return Moments(some.count, missing, some.mean, some.squares)
        count, gap = self.count + other.count, other.mean - self.mean
        squares = self.squares + other.squares + gap * gap * self.count * other.count / count
        return Moments(count, missing, self.mean + gap * other.count / count, squares)

    @property
    def spread(self) -> float:
        """The standard deviation, over all values as they are."""
        return (self.squares / self.count) ** 0.5 if self.count else 0.0


class Levels(Record):
    """How often each level of a category occurs, and how many values are missing."""

    missing: int
    counts: dict[str, int]

    @classmethod
    def of(cls, column: Column) -> Levels:
        """The levels of a category."""
        codes, counts = _occurring(column)
        found = dict(zip(codes.tolist(), counts.tolist(), strict=True))
        missing = found.pop(-1, 0)
        return cls(missing, {column.levels[code]: count for code, count in found.items()})

    def merge(self, other: Levels) -> Levels:
        """The levels of both together."""
        return Levels(self.missing + other.missing, dict(Counter(self.counts) + Counter(other.counts)))


class ClientSummary(Record):
    """All that a client sends about its rows: numbers by column, and no row.

    Args:
        rows: how many rows there are, at least 2.
        numbers: count, mean and sum of squares of each feature that is a number.
        categories: how often each level of each feature that is a category occurs.
        target_moments: likewise of a target to regress; None for labels.
        target_levels: likewise of a target with classes; None in regression.
    """

    rows: int
    numbers: dict[str, Moments]
    categories: dict[str, Levels]
    target_moments: Moments | None
    target_levels: Levels | None

    @classmethod
    def of(cls, rows: RawTable, schema: TableSchema) -> ClientSummary:
        """The summary of one client's rows, made at the client."""
        if rows.num_rows < max(2, schema.min_rows):
            raise DataError(
                f"a summary of {rows.num_rows} row(s) would give them away; at least {max(2, schema.min_rows)} are "
                "needed."
            )
        features = {name: rows[name] for name in schema.features}
        target = rows[schema.target]
        return cls(
            rows.num_rows,
            {name: Moments.of(column.values) for name, column in features.items() if not column.is_category},
            {name: Levels.of(column) for name, column in features.items() if column.is_category},
            None if schema.has_classes else Moments.of(target.values),
            Levels.of(target.as_category()) if schema.has_classes else None,
        )


class PreparedColumn(Record):
    """A number becomes `(value − center) / scale`, with `fill` for a missing value; a category one column a level.

    The most frequent level, `reference`, has no column: with one, the columns would add up to the model's bias, and no
    data could separate the two. It is None for a number.
    """

    name: str
    fill: float = 0.0
    center: float = 0.0
    scale: float = 1.0
    reference: str | None = None
    levels: tuple[str, ...] = ()
    other: bool = False

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns of numbers that it becomes."""
        if self.reference is None:
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in (*self.levels, *(("other",) if self.other else ())))


class PreparedTarget(Record):
    """Labels: +1 for `positive`, −1 for the rest. Numbers: `(value − mean) / scale`; the defaults change nothing.

    Of several classes each becomes its place in `classes`.
    """

    name: str
    labels: bool
    mean: float = 0.0
    scale: float = 1.0
    positive: str = ""
    negative: str = ""
    classes: tuple[str, ...] = ()


class Preparation(Record):
    """What every client does to its own rows.

    Args:
        columns: what becomes of each feature that is kept.
        target: what becomes of the target.
        notes: what was left out and filled, sentences for people.
    """

    columns: tuple[PreparedColumn, ...]
    target: PreparedTarget
    notes: tuple[str, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """What each number of a prepared row, and each weight of a linear model, stands for."""
        return tuple(name for column in self.columns for name in column.feature_names)

    def apply(self, rows: RawTable) -> tuple[np.ndarray, np.ndarray]:
        """Features (n, d) and targets (n,) of one client's rows, made at the client."""
        x, y = np.empty((rows.num_rows, len(self.feature_names))), np.empty(rows.num_rows)
        self.apply_into(rows, x, y)
        return x, y

    def apply_into(self, rows: RawTable, x: np.ndarray, y: np.ndarray) -> None:
        """The same, written into `x` (n, d) and `y` (n,), which may be parts of larger arrays."""
        place = 0
        for column in self.columns:
            width = len(column.feature_names)
            _fill(x[:, place : place + width], rows[column.name], column)
            place += width
        y[:] = _targets(rows[self.target.name], self.target)


def prepare_features(rows: RawTable, columns: Sequence[PreparedColumn]) -> np.ndarray:
    """The features (n, d) of rows that have no target yet, prepared as those were that a model was learnt from.

    Args:
        rows: a table with these columns; it may have others.
        columns: what becomes of each column.

    Returns:
        The features.

    Raises:
        DataError: a column is not there, or holds texts where there were numbers.
    """
    rows.require([column.name for column in columns], "which the model was learnt from")
    x, place = np.empty((rows.num_rows, sum(len(column.feature_names) for column in columns))), 0
    for how in columns:
        column = rows[how.name]
        if how.reference is not None:
            column = column.as_category()
        elif column.is_category and not column.missing.all():
            text = column.levels[int(column.values[column.values >= 0][0])]
            raise DataError(
                f'Column "{how.name}" held numbers when the model was learnt, and now it says "{text}". Correct the '
                "column."
            )
        width = len(how.feature_names)
        if column.is_category and how.reference is None:
            x[:, place] = (how.fill - how.center) / how.scale
        else:
            _fill(x[:, place : place + width], column, how)
        place += width
    return x


def _occurring(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """The codes of a category that occur, −1 for missing among them, and how often."""
    if len(column.levels) > len(column.values):
        return np.unique(column.values, return_counts=True)
    counts = np.bincount(column.values + 1, minlength=1)
    places = np.flatnonzero(counts)
    return places - 1, counts[places]


def _fill(out: np.ndarray, column: Column, how: PreparedColumn) -> None:
    if not column.is_category:
        out[:, 0] = (np.where(np.isnan(column.values), how.fill, column.values) - how.center) / how.scale
        return
    place: dict[str | None, int] = {level: i for i, level in enumerate(how.levels)}
    place[how.reference] = -1
    beyond = len(how.levels) if how.other else -1
    place_of_code = np.full(len(column.levels) + 1, -1, np.int64)  # the last is that of a missing value
    for code in _occurring(column)[0].tolist():
        place_of_code[code] = place.get(MISSING_LEVEL if code < 0 else column.levels[code], beyond)
    places = place_of_code[column.values]
    known = np.flatnonzero(places >= 0)
    out[:] = 0.0
    out[known, places[known]] = 1.0


def _targets(column: Column, how: PreparedTarget) -> np.ndarray:
    if not how.labels and not how.classes:
        return (column.values - how.mean) / how.scale
    named = column.as_category()
    if how.classes:
        place = {name: i for i, name in enumerate(how.classes)}
        numbers: np.ndarray = np.array([place.get(level, -1) for level in named.levels], np.float64)[named.values]
        unknown = np.flatnonzero(numbers < 0)
        if len(unknown):
            raise DataError(
                f'The class "{named.levels[named.values[unknown[0]]]}" of the target "{how.name}" occurs in held-out '
                "rows only, so it cannot be learnt. Give it more rows, take it out, or hold out less."
            )
        return numbers
    positive = named.levels.index(how.positive) if how.positive in named.levels else -2
    return np.where(named.values == positive, 1.0, -1.0)


# ---- the server's side ---------------------------------------------------------------------------------------------


def merge_summaries(summaries: Sequence[ClientSummary], schema: TableSchema) -> Preparation:
    """What every client is to do to its rows: means and spreads over all rows, levels over all clients.

    Args:
        summaries: one of every client, at least one.
        schema: the columns to learn from; the same that the summaries were made with.

    Returns:
        The preparation; it is sent to all clients.
    """
    rows = sum(summary.rows for summary in summaries)
    columns: list[PreparedColumn] = []
    left_out: list[str] = []
    filled: list[str] = []
    encoded: list[str] = []
    for name in schema.features:
        if name in summaries[0].numbers:
            moments = reduce(Moments.merge, (summary.numbers[name] for summary in summaries))
            reason = "all missing" if not moments.count else "constant" if moments.squares == 0 else ""
            if reason:
                left_out.append(f"{name} ({reason})")
                continue
            columns.append(_encode_number(name, moments, schema.scale))
            filled += _fill_note(name, moments, summaries, rows)
        else:
            levels = reduce(Levels.merge, (summary.categories[name] for summary in summaries))
            prepared, reason, note = _encode_category(name, levels, schema)
            if prepared is None:
                left_out.append(f"{name} ({reason})")
            else:
                columns.append(prepared)
                encoded.append(note)
    if not columns:
        raise DataError(
            f"No column is left to learn from: {', '.join(left_out) or 'the table has none besides the target'}."
        )
    target, target_note = _target(summaries, schema)
    notes = [target_note]
    notes += [f"left out: {', '.join(left_out)}"] if left_out else []
    notes += [f"missing values filled with the mean over all clients: {', '.join(filled)}"] if filled else []
    notes += [f"categories: {'; '.join(encoded)}"] if encoded else []
    return Preparation(tuple(columns), target, tuple(notes))


def _encode_number(name: str, moments: Moments, scale: bool) -> PreparedColumn:
    mean = moments.mean
    return PreparedColumn(name, mean, mean, moments.spread) if scale else PreparedColumn(name, mean)


def _fill_note(name: str, moments: Moments, summaries: Sequence[ClientSummary], rows: int) -> list[str]:
    if not moments.missing:
        return []
    without = sum(not summary.numbers[name].count for summary in summaries)
    empty = f", {without} client(s) having none at all" if without else ""
    return [f"{name} {moments.missing:,} ({100 * moments.missing / rows:.1f} %{empty})"]


def _encode_category(name: str, levels: Levels, schema: TableSchema) -> tuple[PreparedColumn | None, str, str]:
    """The column, or why there is none; and what to say of it. The most frequent levels first, then by name."""
    counts = {**levels.counts, **({MISSING_LEVEL: levels.missing} if levels.missing else {})}
    if len(counts) <= 1:
        return None, "constant" if levels.counts else "all missing", ""
    ranked = sorted(counts, key=lambda level: (-counts[level], level))
    kept = [level for level in ranked if counts[level] >= schema.min_level_count][: schema.max_levels]
    if not kept:
        return None, f"none of its {len(counts):,} levels occurs {schema.min_level_count} times", ""
    rare = len(counts) - len(kept)
    others = f" and {rare:,} rare ones, taken together as other" if rare else ""
    words = f"{name} has {len(kept)} levels{others}, measured against {kept[0]}"
    return PreparedColumn(name, reference=kept[0], levels=tuple(sorted(kept[1:])), other=rare > 0), "", words


def _target(summaries: Sequence[ClientSummary], schema: TableSchema) -> tuple[PreparedTarget, str]:
    if not schema.has_classes:
        moments = reduce(Moments.merge, (s.target_moments for s in summaries if s.target_moments is not None))
        if moments.squares == 0:
            raise DataError(
                f'The target "{schema.target}" is {moments.mean:g} in every row, so there is nothing to learn. '
                "Name another with --target."
            )
        words = f"target: {schema.target}, mean {moments.mean:.4g}, standard deviation {moments.spread:.4g}"
        if not schema.target_scaling:
            return PreparedTarget(schema.target, False), words
        return PreparedTarget(schema.target, False, moments.mean, moments.spread), f"{words}, scaled to 0 and 1"
    counts = reduce(Levels.merge, (s.target_levels for s in summaries if s.target_levels is not None)).counts
    if schema.classes:
        return _several_classes(schema.target, counts)
    positive, negative = classes(schema, counts)
    words = f"target: {schema.target}, +1 is {positive} ({counts[positive]:,} training rows), −1 is {negative}"
    return PreparedTarget(schema.target, True, positive=positive, negative=negative), words


def _several_classes(name: str, counts: Mapping[str, int]) -> tuple[PreparedTarget, str]:
    known = sorted(counts, key=_in_order)
    if len(known) < 2:
        raise DataError(
            f'The target "{name}" is {known[0]} in every row, so there is nothing to learn. Name another with --target.'
        )
    shown = [f"{level} ({counts[level]:,})" for level in known[:5]] + ([f"{len(known) - 5} more"] * (len(known) > 5))
    words = f"target: {name}, {len(known)} classes with their training rows: {', '.join(shown)}"
    return PreparedTarget(name, False, classes=tuple(known)), words


def classes(schema: TableSchema, counts: Mapping[str, int]) -> tuple[str, str]:
    """Which class is +1 and what is −1."""
    known = sorted(counts, key=_in_order)
    shown = ", ".join(known[:5]) + (", ..." if len(known) > 5 else "")
    if schema.positive is not None:
        if schema.positive not in counts:
            raise DataError(f'data.positive is "{schema.positive}", but the classes of {schema.target} are {shown}.')
        rest = [name for name in known if name != schema.positive]
    elif len(known) == 2:
        return known[1], known[0]
    else:
        rest = [] if len(known) == 1 else known
    if not rest:
        raise DataError(
            f'The target "{schema.target}" is {shown} in every row, so there is nothing to learn. '
            "Name another with --target."
        )
    if schema.positive is None:
        raise DataError(
            f'The target "{schema.target}" has {len(known)} classes ({shown}), and this problem needs 2. Name one '
            f'with --set data.positive="{known[0]}" to separate it from the rest, or keep the rows of two.'
        )
    return schema.positive, rest[0] if len(rest) == 1 else "the rest"


def _in_order(name: str) -> tuple[int, float, str]:
    """Numbers by value, then texts by name."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
