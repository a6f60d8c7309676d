"""The figure of a run's clients: each one's loss under the common model and under a model of its own."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from asyncfed.analysis.client_table import MOST_ROWS, ClientTable
from asyncfed.report.figures.figure_data import FigureData, Panel, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_RUNS = 4
"""A figure has a panel for each run, and room for so many."""


class DrawableClientTable(ClientTable):
    """A table of clients with a method that draws it: `run.clients.plot()`."""

    def plot(self) -> Figure:
        """A Matplotlib figure: each client's loss under the common model and alone, the smallest first."""
        return draw_clients(self)


def draw_clients(table: ClientTable) -> Figure:
    """A Matplotlib figure: each client's loss under the common model and alone, the smallest first."""
    from asyncfed.report.figures.matplotlib_figures import draw_figure

    return draw_figure(client_figure({"clients": table}))


def client_figure(tables: Mapping[str, ClientTable], rerun: str = "") -> FigureData:
    """A panel for each run's clients, the smallest loss first."""
    return FigureData(
        "clients",
        "Loss of each client",
        "Loss on the client's own rows, of the model trained together and of the best one it could have trained alone. "
        "Clients are sorted by the former; the worst tenth is marked.",
        tuple(_panel(label, table) for label, table in list(tables.items())[:MOST_RUNS]),
        rerun,
    )


def _panel(label: str, table: ClientTable) -> Panel:
    order = np.argsort(np.nan_to_num(table["loss"], nan=np.inf), kind="stable")
    worst = np.where(table["worst"][order], table["loss"][order], np.nan)
    own = {"alone": "alone", "personalised": "personalized"}
    own_lines = {line: table[name][order] for line, name in own.items() if name in table.columns}
    lines = {"together": table["loss"][order], **own_lines, "worst tenth": worst}
    places = tuple(float(place) for place in range(1, len(order) + 1))
    series = tuple(
        Series(name, places, tuple(float(v) if isfinite(v) else None for v in values), kind="points")
        for name, values in lines.items()
    )
    names = ", ".join(table["name"][order]) if len(order) <= MOST_ROWS else ""
    alone = table.alone_description if table.not_compared else f"alone: {table.alone_description}"
    note = f"{alone[0].upper()}{alone[1:]}." + (f" Clients in this order: {names}." if names else "")
    return Panel(label, "clients, smallest loss first", f"loss on {table.part} rows", series, y_log=True, note=note)
