"""Sentences about how a table was written, where one should know."""

from __future__ import annotations

from collections.abc import Mapping

from asyncfed.data.reading.text_columns import Reading, Writing


def writing_notes(readings: Mapping[str, Reading], *, utf_16: bool = False, has_index: bool = False) -> tuple[str, ...]:
    """What to say of a table: one sentence for each thing found.

    Args:
        readings: the columns and how their texts were written.
        utf_16: whether the file is in that encoding.
        has_index: whether a first column without a name was passed over.

    Returns:
        The sentences.
    """

    def written(writing: Writing) -> str:
        return name_some([name for name, reading in readings.items() if reading.writing == writing])

    sentences = {
        "the file is UTF-16": utf_16,
        "the first column has no name (the index of a data frame?) and is left out": has_index,
        f"decimal commas were read as such: {written('decimal comma')}": bool(written("decimal comma")),
        f"commas between thousands were taken out: {written('thousands separator')}": bool(
            written("thousands separator")
        ),
        f"times with a time zone are counted in UTC: {written('time zone')}": bool(written("time zone")),
    }
    return tuple(sentence for sentence, holds in sentences.items() if holds)


def name_some(names: list[str]) -> str:
    """The first names of a list, and how many more there are.

    >>> name_some(["a", "b"]), name_some(list("abcdefgh"))
    ('a, b', 'a, b, c, d, e and 3 more')
    """
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
