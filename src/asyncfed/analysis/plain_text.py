"""Results as plain text, for `print`: short numbers, and a table of rows without colours."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from textwrap import wrap


def format_number(value: float) -> str:
    """Three digits, without exponents where people would write none.

    >>> format_number(1234.5), format_number(0.020312), format_number(3.0)
    ('1,234', '0.0203', '3')
    """
    if not isfinite(value):
        return "–"
    if 1000 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def text_table(title: str, names: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """A title, a header, a line, the rows and a caption; the first column is aligned left, all others right.

    >>> print(text_table("losses", ["client", "loss"], [["north", "9.29"], ["west", "2.5"]], "on test rows"))
    losses
     client   loss
    ───────────────
     north    9.29
     west      2.5
    on test rows
    """
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    line = "─" * (sum(widths) + 3 * len(widths) - 1)
    lines = ["   ".join(_cells(row, widths)) for row in (names, *rows)]
    head, *body = [f" {text}".rstrip() for text in lines]
    return "\n".join([title, head, line, *body, *wrap(caption, len(line))])


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *others = zip(row, widths, strict=True)
    return [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
