"""What a figure shows, without how: series with bands, labels and units. Paper, page and CSV are all drawn from it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from asyncfed.core.record import Record, from_plain, to_json
from asyncfed.store.json_files import read_json


class Series(Record):
    """One line: `low` and `high` are its band over seeds (the same length as `y`), or empty for none.

    `group` names what can be switched on and off together (a client fraction, a reading); `emphasis` draws it bold.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    group: str = ""
    emphasis: bool = False
    kind: Literal["line", "points", "bar"] = "line"


class Panel(Record):
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_log: bool = False
    y_log: bool = False
    note: str = ""


class FigureData(Record):
    """A figure of one or more panels, what the reader should know about it, and how to make it again."""

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    rerun: str = ""


def save(figure: FigureData, path: Path) -> None:
    """Write the figure's data as JSON: the same bytes for the same data."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_json(figure) + "\n")


def load(path: Path) -> FigureData:
    """Read a figure's data from the JSON that `save` wrote."""
    return from_plain(read_json(path), FigureData)
