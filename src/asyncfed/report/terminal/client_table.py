"""The clients of a run as a table in a terminal."""

from __future__ import annotations

from rich import box
from rich.table import Table

from asyncfed.analysis.client_table import ClientTable


def client_table(clients: ClientTable) -> Table:
    """A row a client, those of the worst tenth marked; the summary below."""
    table = Table(
        title=clients.title,
        caption=clients.caption,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
    )
    table.add_column("client", style="bold")
    for name in clients.shown_columns:
        table.add_column(name.replace("_", " "), justify="right")
    for cells in clients.shown_rows():
        table.add_row(*cells)
    return table
