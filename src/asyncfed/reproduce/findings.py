"""Looking up what a reproduction found, for the pages about it; what is missing is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asyncfed.analysis.plain_text import format_number
from asyncfed.core.errors import ConfigError
from asyncfed.presets import Reading
from asyncfed.report.figures.figure_data import FigureData, Series

READINGS: tuple[Reading, ...] = ("published", "text")
BY_TEXT, BY_SCRIPTS = "text's definition: ", "scripts' definition: "
"""How the labels of the two definitions of wall-clock and of energy begin."""


class Findings:
    """The findings and figures of a reproduction, looked up by name; what is missing is an error."""

    def __init__(
        self, entries: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], figures: Sequence[FigureData]
    ) -> None:
        self.entries = entries
        self.settings = settings
        self.figures = {figure_number(figure.name): figure for figure in figures}

    def finding(self, claim: str, reading: Reading) -> Mapping[str, Any]:
        """What was found about a claim in one reading."""
        for found in self.entries:
            if (found["id"], found["reading"]) == (claim, reading):
                return found
        raise incomplete(f'no verdict on "{claim}" in the reading {reading}')

    def number(self, claim: str, reading: Reading) -> str:
        """Its number with its unit."""
        return number_words(self.finding(claim, reading))

    def reason(self, claim: str, reading: Reading) -> str:
        """Its reason, in words."""
        return str(self.finding(claim, reading)["reason"])

    def figure(self, number: int) -> FigureData:
        """The data of a figure, by its number."""
        if number not in self.figures:
            raise incomplete(f"no figure {number}")
        return self.figures[number]

    def series(self, figure: int, panel: int, label: str) -> Series:
        """The series whose label begins so."""
        panels = self.figure(figure).panels
        for series in panels[panel].series if panel < len(panels) else ():
            if series.label.startswith(label):
                return series
        raise incomplete(f'no "{label}" in panel {panel + 1} of figure {figure}')

    def last(self, figure: int, panel: int, label: str) -> str:
        """What that series ends at."""
        return value_words(self.series(figure, panel, label).y[-1])


def figure_number(name: str) -> int:
    """The number of a figure, from its name."""
    return int(name.split("_")[0])


def incomplete(what: str) -> ConfigError:
    """The error for a reproduction that lacks something."""
    return ConfigError(
        f"The reproduction has {what}, and the summary covers all of it. Run `asyncfed reproduce` without --only, "
        "with this version of AsyncFed."
    )


def number_words(found: Mapping[str, Any]) -> str:
    """The number with its unit, as it is printed."""
    if found["number"] is None:
        return "no number"
    unit = "×" if found["unit"] == "x" else f" {found['unit']}" if found["unit"] else ""
    return f"{digits(found['number'])}{unit}"


def digits(value: float) -> str:
    """Three digits; four near 1, where they make the difference.

    >>> digits(0.2444), digits(1.0013)
    ('0.244', '1.001')
    """
    return f"{value:.4g}" if 0.9 < value < 1.1 else format_number(value)


def value_words(value: float | None) -> str:
    """A value as it is printed; None is one that diverged."""
    return "diverged" if value is None else format_number(value)
