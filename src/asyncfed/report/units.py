"""Numbers with units: the prefix that fits, and text short enough for a table."""

from __future__ import annotations

from math import isfinite

from asyncfed.analysis.comparison_target import rises
from asyncfed.analysis.plain_text import format_number
from asyncfed.analysis.protocols import Axis, ReportedComparison, check_axis
from asyncfed.core.record import Record

PREFIXES = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))
NAMES: dict[Axis, tuple[str, str]] = {
    "round": ("rounds", ""),
    "elapsed": ("virtual time", "s"),
    "bytes": ("communication, down and up", "B"),
    "energy": ("energy of computing", "J"),
}


class Scale(Record):
    """A quantity's name, the unit it is shown in, and what to divide by to get there."""

    name: str
    unit: str
    divisor: float

    @property
    def label(self) -> str:
        """The name with the unit, for an axis."""
        return f"{self.name}, {self.unit}" if self.unit else self.name


def choose_scale(axis: Axis, largest: float) -> Scale:
    """The unit in which `largest` is a number from 1 to 1,000. Rounds and seconds keep theirs.

    >>> choose_scale("bytes", 2.5e6).label
    'communication, down and up, MB'
    """
    check_axis(axis)
    name, unit = NAMES[axis]
    if axis in ("round", "elapsed"):
        return Scale(name, unit, 1.0)
    prefix, divisor = max((p for p in PREFIXES if p[1] <= largest), key=lambda p: p[1], default=PREFIXES[0])
    return Scale(name, prefix + unit, divisor)


def format_quantity(axis: Axis, value: float) -> str:
    """A value with its unit, to three digits; a dash if there is none.

    >>> format_quantity("energy", 12_345.0), format_quantity("round", 17.0), format_quantity("elapsed", float("nan"))
    ('12.3 kJ', '17', '–')
    """
    if not isfinite(value):
        return "–"
    scale = choose_scale(axis, value)
    return f"{format_number(value / scale.divisor)} {scale.unit}".rstrip()


def format_ratio(ratio: float) -> str:
    """A ratio to two digits, which is as well as a few seeds know it.

    >>> format_ratio(0.2371), format_ratio(13.2), format_ratio(1234.5)
    ('0.24', '13', '1,234')
    """
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"


def describe_target(comparison: ReportedComparison) -> str:
    """What has to be reached, in words: a value that was asked for, or a share of the progress."""
    words, sign = comparison.metric.replace("_", " "), "≥" if rises(comparison.metric) else "≤"
    value = f"{words} {sign} {format_number(comparison.target)}"
    return value if comparison.asked_target is not None else f"95 % of the progress ({value})"
