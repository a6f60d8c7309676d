"""Markdown with lines of a width that can be read in an editor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill

WIDTH = 120


def wrapped(text: str) -> str:
    """A paragraph in lines of at most `WIDTH` characters."""
    return fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def bullets(items: Iterable[str]) -> str:
    """A list, wrapped likewise."""
    return "\n".join(
        fill(f"- {item}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for item in items
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown.

    >>> print(table(("claim", "number"), [("a | b", "1")]))
    | claim | number |
    |---|---|
    | a \\| b | 1 |
    """
    lines = [head, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    written = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([written[0], "|" + "---|" * len(head), *written[1:]])
