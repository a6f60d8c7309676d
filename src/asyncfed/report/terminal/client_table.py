"""The clients of a run as a table in a terminal, as wide as the terminal is."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from asyncfed.analysis.client_table import ClientTable

SHORT_NAME = 12
"""Characters of a client's name for which columns are left out; the rest of a name is cut if there is no room."""

GAP = 2
"""Characters between columns."""

DISPENSABLE = ("alone_accuracy", "personalized_accuracy", "merges", "weight", "rows", "alone", "accuracy")
"""Columns that are left out, in this order, until a table fits."""


def client_table(clients: ClientTable, width: int = 80) -> Table:
    """A row a client, those of the worst tenth marked; the summary below.

    Args:
        clients: the table.
        width: how many characters there are. Columns that do not fit are left out and named below.

    Returns:
        A table to be printed by rich.
    """
    names = clients.printed_columns
    cells = dict(zip(("client", *names), zip(*clients.shown_rows(), strict=True), strict=True))
    widths = {name: max(len(part) for part in (*_head(name).split("\n"), *cells[name])) for name in names}
    longest = max(map(len, ("client", *cells["client"])))
    left_out = _left_out(widths, width - min(SHORT_NAME, longest) - GAP)
    shown = [name for name in names if name not in left_out]
    table = Table(
        title=clients.title,
        caption=clients.caption + _left_out_words(left_out),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, GAP - 1, 0, 0),  # the box adds one
    )
    room = width - sum(widths[name] + GAP for name in shown)
    table.add_column("client", style="bold", no_wrap=True, max_width=max(1, room), overflow="ellipsis")
    for name in shown:
        table.add_column(_head(name), justify="right", no_wrap=True)
    for row in zip(cells["client"], *(cells[name] for name in shown), strict=True):
        table.add_row(*row)
    return table


def _head(name: str) -> str:
    return name.replace("_", "\n")


def _left_out(widths: dict[str, int], room: int) -> list[str]:
    """The columns to leave out so that the others, as wide as said here, have room."""
    left_out: list[str] = []
    for name in (name for name in DISPENSABLE if name in widths):
        if sum(size + GAP for other, size in widths.items() if other not in left_out) <= room:
            break
        left_out.append(name)
    return left_out


def _left_out_words(columns: Sequence[str]) -> str:
    names = ", ".join(name.replace("_", " ") for name in columns)
    return f". Left out for want of room: {names} (`asyncfed export --table clients`)" if columns else ""
