"""How a run served each of its clients: a table by column, its summary, its look in a terminal, and its figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from asyncfed.core.errors import ConfigError
from asyncfed.report.figures.figure_data import FigureData, Panel, Series
from asyncfed.report.units import short

MOST_ROWS = 50
"""Above it, a terminal shows the clients that are served worst."""


@dataclass(frozen=True, eq=False)
class ClientTable:
    """`columns` by name, one value a client, in the order of the clients' numbers.

    `part` says on which rows losses were measured: `test`, else `validation`, else `training`.
    """

    columns: Mapping[str, np.ndarray]
    part: str

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.columns["client"])

    @property
    def has_accuracy(self) -> bool:
        return "accuracy" in self.columns

    @property
    def alone_words(self) -> str:
        """How the clients' own models were found."""
        epochs = self.columns["alone_epochs"]
        at_optimum, longest = int((epochs == 0).sum()), int(epochs.max())
        if not longest:
            return "the minimiser of the client's own loss"
        trained = f"trained for {longest} epochs on the client's own rows"
        return f"{trained}, but at {at_optimum} clients the minimiser" if at_optimum else trained

    def summary(self) -> dict[str, float]:
        """How evenly clients are served and heard; NaN where nothing was measured."""
        loss, gain = (self.columns[name][np.isfinite(self.columns[name])] for name in ("loss", "gain"))
        merges = self.columns["merges"].astype(np.float64)
        squares = float(np.square(merges).sum())
        return {
            "mean loss": float(loss.mean()) if len(loss) else np.nan,
            "spread of losses": float(loss.std()) if len(loss) else np.nan,
            "worst tenth": float(loss_of_worst_tenth(loss)) if len(loss) else np.nan,
            "better off federated": float((gain > 0).mean()) if len(gain) else np.nan,
            "Jain's index": float(merges.sum() ** 2 / (len(merges) * squares)) if squares else 0.0,
            "largest effective weight": float(self.columns["weight"].max()),
            "smallest effective weight": float(self.columns["weight"].min()),
        }

    def to_pandas(self) -> Any:
        """The table as a pandas data frame."""
        try:
            import pandas
        except ImportError as error:
            raise ConfigError("A data frame needs pandas: pip install pandas, or use the columns as arrays.") from error
        return pandas.DataFrame(dict(self.columns))

    def plot(self) -> Any:
        """A Matplotlib figure: each client's loss together and alone, best served first."""
        from asyncfed.report.figures.matplotlib_figures import draw

        return draw(client_figure({"clients": self}))

    def plain(self) -> dict[str, list[Any]]:
        """The columns as lists, for files."""
        return {name: values.tolist() for name, values in self.columns.items()}

    def __str__(self) -> str:
        console = Console(width=100, no_color=True)
        with console.capture() as printed:
            console.print(client_table(self))
        return "\n".join(line.rstrip() for line in printed.get().splitlines())


def loss_of_worst_tenth(losses: np.ndarray) -> float:
    """The mean of the largest tenth, of one client at least.

    >>> loss_of_worst_tenth(np.arange(20.0))
    18.5
    """
    count = max(1, len(losses) // 10)
    return float(np.sort(losses)[-count:].mean())


def worst_tenth(losses: np.ndarray) -> np.ndarray:
    """True for the tenth of the clients, one at least, with the largest losses; clients without one are left out."""
    known = np.flatnonzero(np.isfinite(losses))
    marked = np.zeros(len(losses), bool)
    if len(known):
        marked[known[np.argsort(losses[known], kind="stable")][-max(1, len(known) // 10) :]] = True
    return marked


# ---- in a terminal -------------------------------------------------------------------------------------------------


def client_table(clients: ClientTable) -> Table:
    """A row a client, those of the worst tenth marked; the summary below."""
    shown = np.arange(len(clients))
    title = f"clients, on their {clients.part} rows"
    if len(clients) > MOST_ROWS:
        shown = np.argsort(-np.nan_to_num(clients["loss"], nan=-np.inf), kind="stable")[:MOST_ROWS]
        title = f"the {MOST_ROWS} of {len(clients):,} clients that are served worst, on their {clients.part} rows"
    summary = ", ".join(f"{name} {short(value)}" for name, value in clients.summary().items())
    words = f"alone: {clients.alone_words}. * worst tenth. {summary}"
    table = Table(
        title=title, caption=words, title_justify="left", caption_justify="left", box=box.SIMPLE_HEAD, show_edge=False
    )
    names = ["rows", "merges", "weight", "loss", "alone", "gain"]
    names += ["accuracy", "alone_accuracy"] if clients.has_accuracy else []
    table.add_column("client", style="bold")
    for name in names:
        table.add_column(name.replace("_", " "), justify="right")
    for row in shown:
        mark = " *" if clients["worst"][row] else ""
        table.add_row(f"{clients['name'][row]}{mark}", *(short(float(clients[name][row])) for name in names))
    return table


# ---- as a figure ---------------------------------------------------------------------------------------------------


def client_figure(tables: Mapping[str, ClientTable], rerun: str = "") -> FigureData:
    """Each run's clients, best served first: the common model's loss beside that of a model trained alone."""
    return FigureData(
        "clients",
        "How each client is served",
        "Loss on the client's own rows of the model learnt together, and of the best one it could have had alone. "
        "Clients are sorted by the former; the worst tenth is marked.",
        tuple(_panel(label, table) for label, table in list(tables.items())[:4]),
        rerun,
    )


def _panel(label: str, table: ClientTable) -> Panel:
    order = np.argsort(np.nan_to_num(table["loss"], nan=np.inf), kind="stable")
    worst = np.where(table["worst"][order], table["loss"][order], np.nan)
    lines = {"together": table["loss"][order], "alone": table["alone"][order], "worst tenth": worst}
    places = tuple(float(place) for place in range(1, len(order) + 1))
    series = tuple(
        Series(name, places, tuple(float(v) if isfinite(v) else None for v in values), kind="points")
        for name, values in lines.items()
    )
    names = ", ".join(table["name"][order]) if len(order) <= MOST_ROWS else ""
    note = f"Alone: {table.alone_words}." + (f" Clients in this order: {names}." if names else "")
    return Panel(label, "clients, best served first", f"loss on {table.part} rows", series, y_log=True, note=note)
