"""What a column of texts stands for: numbers, else true and false, else dates, else categories.

A column comes as its distinct texts and, for each row, which of them it holds; all that is decided is decided about the
distinct texts, by Arrow, and looked up for the rows. `tests/data/reading/plain_texts.py` says the same text by text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import numpy as np

from asyncfed.core.errors import DataError
from asyncfed.data.raw_table import BOOLEANS, FIRST_ROW, Column, Kind

Writing: TypeAlias = Literal["plain", "decimal comma", "thousands separator", "time zone"]
"""How texts of one meaning are written, where there is more than one way."""

PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
DECIMAL_COMMA = r"^[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d*)?([eE][+-]?\d+)?$"
THOUSANDS = r"^[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d*)?([eE][+-]?\d+)?$"

NO_DATE = r"^[^0-9]|^.{0,7}$"
"""A text that does not begin with a digit, or is shorter than 20240131, is no date."""


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of texts.

    Args:
        distinct: an Arrow array of texts, none of them null.
        codes: which of them each row holds, −1 for none.
    """

    distinct: Any
    codes: np.ndarray


@dataclass(frozen=True, eq=False)
class Reading:
    """A column, and how its texts were written."""

    column: Column
    writing: Writing = "plain"


def read_texts(
    name: str, texts: Texts, missing: Iterable[str], *, as_category: bool = False, delimiter: str = ","
) -> Reading:
    """The column that texts stand for.

    Args:
        name: the column's name, for errors.
        texts: the texts.
        missing: texts that mean "no value"; spaces around a text do not count.
        as_category: True takes every text as a name.
        delimiter: that of the file: where it is no comma, "1,5" is one and a half.

    Returns:
        The column. One most of whose values are numbers is one of numbers, and a text in it is refused.
    """
    import pyarrow
    import pyarrow.compute as compute

    trimmed = compute.utf8_trim_whitespace(texts.distinct)
    absent = compute.is_in(trimmed, value_set=pyarrow.array(sorted(missing), pyarrow.string()))
    known = ~np.asarray(absent, bool)
    meant = trimmed.filter(pyarrow.array(known))
    places = np.flatnonzero(known)
    if as_category:
        return Reading(_categories(texts, meant, places))
    numbers = _numbers(meant)
    if not np.isnan(numbers).any():
        return Reading(_look_up("number", texts, places, numbers))
    for writing, pattern in _other_writings(delimiter):
        if _all_match(meant, pattern):
            numbers = _numbers(_as_plain(meant, writing))
            if not np.isnan(numbers).any():
                return Reading(_look_up("number", texts, places, numbers), writing)
    if len(meant) <= 4 * len(BOOLEANS) and {text.lower() for text in meant.to_pylist()} <= BOOLEANS.keys():
        values = np.array([BOOLEANS[text.lower()] for text in meant.to_pylist()])
        return Reading(_look_up("boolean", texts, places, values))
    days, with_zone = _days(meant)
    if days is not None:
        return Reading(_look_up("date", texts, places, days), "time zone" if with_zone else "plain")
    _refuse_a_text_among_numbers(name, texts, places, numbers)
    return Reading(_categories(texts, meant, places))


def _numbers(texts: Any) -> np.ndarray:
    """The finite numbers that texts stand for, NaN for the others."""
    import pyarrow
    import pyarrow.compute as compute

    matching = np.asarray(compute.match_substring_regex(texts, PLAIN), bool)
    values = np.full(len(texts), np.nan)
    found = compute.cast(texts.filter(pyarrow.array(matching)), pyarrow.float64())
    values[matching] = found.to_numpy(zero_copy_only=False)
    values[np.isinf(values)] = np.nan
    return values


def _other_writings(delimiter: str) -> list[tuple[Writing, str]]:
    """The other ways of writing numbers. "1,234" is 1.234 where values are parted by semicolons, else 1234."""
    comma: tuple[Writing, str] = ("decimal comma", DECIMAL_COMMA)
    thousands: tuple[Writing, str] = ("thousands separator", THOUSANDS)
    return [thousands, comma] if delimiter == "," else [comma, thousands]


def _as_plain(texts: Any, writing: Writing) -> Any:
    import pyarrow.compute as compute

    if writing == "thousands separator":
        return compute.replace_substring(texts, ",", "")
    return compute.replace_substring(compute.replace_substring(texts, ".", ""), ",", ".")


def _all_match(texts: Any, pattern: str) -> bool:
    import pyarrow.compute as compute

    return len(texts) > 0 and bool(compute.all(compute.match_substring_regex(texts, pattern)).as_py())


def _days(texts: Any) -> tuple[np.ndarray | None, bool]:
    """Days since 1970 of dates and times in ISO form, or None if one is none; and whether any has a time zone."""
    import pyarrow
    import pyarrow.compute as compute

    if bool(compute.any(compute.match_substring_regex(texts, NO_DATE)).as_py()):
        return None, False
    for with_zone, kind in ((False, pyarrow.timestamp("us")), (True, pyarrow.timestamp("us", tz="UTC"))):
        try:
            moments = compute.cast(texts, kind)
        except pyarrow.ArrowInvalid:
            continue
        return moments.cast(pyarrow.int64()).to_numpy(zero_copy_only=False) / 86_400e6, with_zone
    return _days_one_by_one(texts.to_pylist())


def _days_one_by_one(texts: list[str]) -> tuple[np.ndarray | None, bool]:
    """Rarer ISO forms, and columns in which only some times have a zone: those without count as UTC."""
    days, with_zone = [], False
    for text in texts:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None, False
        with_zone |= moment.tzinfo is not None
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        days.append((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86400.0)
    return np.array(days), with_zone


def _look_up(kind: Kind, texts: Texts, places: np.ndarray, values: np.ndarray) -> Column:
    meaning = np.full(len(texts.distinct) + 1, np.nan)  # the last is that of no text
    meaning[places] = values
    return Column(kind, meaning[texts.codes])


def _categories(texts: Texts, meant: Any, places: np.ndarray) -> Column:
    import pyarrow.compute as compute

    # Arrow sorts by bytes, which for UTF-8 is the order of Python.
    levels = compute.unique(meant)
    levels = levels.take(compute.sort_indices(levels))
    meaning = np.full(len(texts.distinct) + 1, -1, np.int32)
    meaning[places] = np.asarray(compute.index_in(meant, value_set=levels), np.int32)
    return Column("category", meaning[texts.codes], tuple(levels.to_pylist()))


def _refuse_a_text_among_numbers(name: str, texts: Texts, places: np.ndarray, numbers: np.ndarray) -> None:
    counts = np.bincount(texts.codes[texts.codes >= 0], minlength=len(texts.distinct))[places]
    wrong = np.isnan(numbers)
    if 2 * counts[~wrong].sum() <= counts.sum():
        return
    row = int(np.flatnonzero(np.isin(texts.codes, places[wrong]))[0])
    text = texts.distinct[int(texts.codes[row])].as_py()
    raise DataError(
        f'Column "{name}" holds numbers, but in row {row + FIRST_ROW} it says "{text}". Correct that row, name the '
        f'text in data.missing if it means "no value", or the column in data.categories if it is a code.'
    )
