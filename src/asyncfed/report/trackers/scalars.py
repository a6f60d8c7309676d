"""A run as series of named numbers, for experiment trackers."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

from asyncfed.analysis.protocols import ReportedRun
from asyncfed.core.record import Record

POSITION_COLUMNS = ("updates", "version", "round", "elapsed")
"""Columns that say where a measurement was made, not what was measured."""


class Scalar(Record):
    """`value` of `name` after `step` merged updates (measurements) or rounds (the account), `elapsed` seconds in."""

    name: str
    value: float
    step: int
    elapsed: float


def scalars_of(run: ReportedRun) -> Iterator[Scalar]:
    """All measurements and all rounds' accounts, those that are finite."""
    for table, prefix, step in ((run.evaluations, "evaluation", "updates"), (run.rounds, "round", "round")):
        for name, values in table.items():
            if name in POSITION_COLUMNS:
                continue
            for value, at, elapsed in zip(values, table[step], table["elapsed"], strict=True):
                if isfinite(value):
                    yield Scalar(f"{prefix}/{name}", float(value), int(at), float(elapsed))


def settings_of(run: ReportedRun) -> dict[str, str]:
    """Every setting of the experiment by its dotted key, and how the run ended, as text."""
    flat = {key: str(value) for key, value in _flat(run.header["experiment"], "")}
    return {**flat, "verdict": run.verdict, "reason": run.reason, "asyncfed": str(run.header["asyncfed"])}


def _flat(plain: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in plain.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
