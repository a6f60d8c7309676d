"""What a report may be about, typed by shape: a run, or a comparison of several strategies over several seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import Record

Axis: TypeAlias = Literal["round", "elapsed", "bytes", "energy"]
AXES: tuple[Axis, ...] = get_args(Axis)
"""What progress can be counted in: rounds, virtual seconds, bytes down and up, joules of computing."""


class ReportedRun(Protocol):
    """A run, as it is recorded in its journal."""

    @property
    def header(self) -> dict[str, Any]: ...
    @property
    def verdict(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def evaluations(self) -> dict[str, np.ndarray]: ...
    @property
    def kept(self) -> int: ...
    @property
    def rounds(self) -> dict[str, np.ndarray]: ...
    @property
    def merge_info(self) -> dict[str, np.ndarray]: ...
    def participation(self) -> np.ndarray: ...
    def participation_of_known(self) -> np.ndarray: ...


class ComparedRun(Protocol):
    """One run of a comparison: its verdict, and its measurements against any axis."""

    @property
    def verdict(self) -> str: ...
    @property
    def reason(self) -> str: ...
    def values(self, metric: str) -> np.ndarray: ...
    def final(self, metric: str) -> float: ...
    def positions(self, axis: Axis) -> np.ndarray: ...


class Ratio(Record):
    """A paired cost ratio over `n` seeds, with its interval; `left_out` seeds had none: a run missed the target."""

    mean: float
    low: float
    high: float
    n: int
    left_out: int


class ReportedComparison(Protocol):
    """Several strategies over the same seeds."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def seeds(self) -> tuple[int, ...]: ...
    @property
    def runs(self) -> Mapping[str, Mapping[int, ComparedRun]]: ...
    @property
    def metric(self) -> str: ...
    @property
    def asked_target(self) -> float | None: ...
    @property
    def target(self) -> float: ...
    @property
    def measured(self) -> tuple[str, ...]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    def time_to_target(self, label: str, axis: Axis) -> np.ndarray: ...
    def paired_ratios(self, label: str, baseline: str, axis: Axis) -> np.ndarray: ...
    def ratio(self, label: str, baseline: str, axis: Axis) -> Ratio: ...


def check_axis(axis: str) -> None:
    """Raise a `ConfigError` that suggests the nearest axis if there is none of this name."""
    if axis not in AXES:
        raise ConfigError(f'There is no axis "{axis}". {did_you_mean(axis, AXES)}')


def check_label(label: str, labels: tuple[str, ...]) -> None:
    """Raise a `ConfigError` that suggests the nearest label if a comparison has none of this name."""
    if label not in labels:
        raise ConfigError(f'The comparison has no strategy "{label}". {did_you_mean(label, labels)}')
