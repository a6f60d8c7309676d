"""What the pages of studies share: their assets, numbers that are short, texts that are listed once, and writing."""

from __future__ import annotations

import json
from importlib.resources import files
from math import isfinite
from pathlib import Path
from string import Template
from typing import Any

from asyncfed.analysis.statistics import Interval
from asyncfed.core.errors import ConfigError

DIGITS = 5


def asset(name: str) -> str:
    """A file of the page's assets."""
    return (files("asyncfed.report.page") / "assets" / name).read_text(encoding="utf-8")


def rounded(value: float | None) -> float | None:
    """A number to five digits; None where there is none, or it is not finite."""
    return None if value is None or not isfinite(value) else float(f"{value:.{DIGITS}g}")


def ends(interval: Interval | None) -> list[float | None]:
    """Mean, low and high end of an interval; three times None where there is none."""
    return [None] * 3 if interval is None else [rounded(v) for v in (interval.mean, interval.low, interval.high)]


class Texts:
    """Texts, each listed once."""

    def __init__(self) -> None:
        self.listed: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """Where this text is in the list."""
        if text not in self._places:
            self._places[text] = len(self.listed)
            self.listed.append(text)
        return self._places[text]


def write_page(path: Path, template: str, data: dict[str, Any], **parts: str) -> Path:
    """Write a page and return its path.

    Args:
        path: where.
        template: the asset that it is made from.
        data: what its script reads.
        parts: what else the template has places for.
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    page = Template(asset(template)).substitute(data=text, **parts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"The page {path} cannot be written ({error.strerror}). Choose another place.") from error
    return path
