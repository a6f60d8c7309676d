"""Guaranteed and measured, side by side: distance to the optimum, objective gap, client drift, and the best clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from asyncfed.certificates.certificate import Certificate
from asyncfed.report.figures.figure_data import FigureData, Panel, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from asyncfed.certificates.best_clock import BestClock
    from asyncfed.certificates.measurements import MeasuredRun
    from asyncfed.theory.guarantee import Guarantee
    from asyncfed.theory.time_complexity import DataLikeness

MOST_POINTS = 400
CLOCK_POINTS = 60
MEASURED = "measured"


class DrawableCertificate(Certificate):
    """A certificate that draws itself, for those who type `certificate.plot()`."""

    @classmethod
    def of(cls, certificate: Certificate) -> DrawableCertificate:
        """The same certificate, drawable."""
        return cls(**vars(certificate))

    def plot(self) -> Figure:
        """A Matplotlib figure: guaranteed and measured, distance and objective gap, and the client drift."""
        return draw_certificate(self)


def draw_certificate(certificate: Certificate) -> Figure:
    """A Matplotlib figure: guaranteed and measured, distance and objective gap, and the client drift."""
    from asyncfed.report.figures.matplotlib_figures import draw_figure

    return draw_figure(certificate_figure(certificate))


def certificate_figure(certificate: Certificate) -> FigureData:
    """Up to four panels; a bound is drawn beside the run only if its theorem covers the run's rule."""
    panels = [_gap_panel(certificate)]
    if any(run.trajectory is not None for run in certificate.runs):
        panels.insert(0, _distance_panel(certificate))
    if certificate.drift_bound is not None and any(np.isfinite(run.drift).any() for run in certificate.runs):
        panels.append(_drift_panel(certificate, certificate.drift_bound))
    if certificate.best_clock is not None and certificate.best_clock.run_seconds is not None:
        panels.append(_clock_panel(certificate.runs[0], certificate.best_clock))
    applying = [g.name for g in certificate.applying]
    if certificate.path is not None:
        applying.append(certificate.path.name)
    covered = f"bounds that cover it: {', '.join(applying)}" if applying else "no bound covers it"
    count, rule = len(certificate.runs), certificate.setting.rule
    return FigureData(
        name="certificate",
        title=f"{certificate.name}: guaranteed and measured",
        caption=f"{rule.name}: {rule.words}; {covered}; {count} run{'s'[: count != 1]}, the band is their smallest and "
        "largest",
        panels=tuple(panels),
    )


def _drawn_guarantees(certificate: Certificate) -> list[Guarantee]:
    """Those that apply; R is left out beside R*, which is never weaker under the same conditions."""
    names = {g.name for g in certificate.guarantees if g.applies}
    return [g for g in certificate.guarantees if g.applies and not (g.name == "R" and "R*" in names)]


def _distance_panel(certificate: Certificate) -> Panel:
    paths = [run.trajectory.distances for run in certificate.runs if run.trajectory is not None]
    versions = certificate.versions
    lines = [_band(MEASURED, versions, paths, squared=True)]
    for g in _drawn_guarantees(certificate):
        if g.distance is not None:
            lines.append(_line(f"{g.name} ({g.covers})", versions, g.distance))
    if certificate.path is not None:
        along = certificate.path.distance
        lines.append(_line(f"{certificate.path.name} (first run)", np.arange(len(along)), along))
    return Panel(
        "Distance to the optimum (root mean square over runs)",
        "version of the model",
        "|x − x*|",
        tuple(lines),
        y_log=True,
    )


def _gap_panel(certificate: Certificate) -> Panel:
    runs, versions = certificate.runs, certificate.versions
    lines = []
    if runs:
        lines.append(_band(MEASURED, runs[0].versions, [r.gap for r in runs]))
        averaged = [run.averaged_gap for run in runs]
        if any(np.isfinite(values).any() for values in averaged):
            lines.append(_band("measured, averaged model", runs[0].versions, averaged))
    for g in _drawn_guarantees(certificate):
        if g.gap is not None:
            lines.append(_line(f"{g.name} ({g.covers})", versions, g.gap))
    if certificate.path is not None and certificate.path.gap is not None:
        along = certificate.path.gap
        lines.append(_line(f"{certificate.path.name} (first run)", np.arange(len(along)), along))
    return Panel("Objective gap", "version of the model", "F − F*", tuple(lines), y_log=True)


def _drift_panel(certificate: Certificate, bound: np.ndarray) -> Panel:
    runs = certificate.runs
    shortest = min(len(run.drift) for run in runs)
    rounds = np.arange(1, shortest)
    note = certificate.drift_note
    lines = (
        _band("measured drift", rounds, [run.drift[1:shortest] for run in runs]),
        _line("Lemma 6", rounds, bound[: shortest - 1]),
    )
    return Panel("Client drift of a round", "round", "E", lines, y_log=True, note=note)


def _clock_panel(run: MeasuredRun, clock: BestClock) -> Panel:
    """When the first run reached each objective gap, and when a method could have, up to constants."""
    later = run.seconds > 0  # a logarithmic axis has no zero
    gaps = np.geomspace(clock.problem.start_gap, clock.target, CLOCK_POINTS)
    lines = [_band(MEASURED, run.seconds[later], [run.gap[later]])]
    labels: tuple[tuple[DataLikeness, str], ...] = (
        ("different", "best possible clock"),
        ("same", "if all clients had the same data"),
    )
    for data, label in labels:
        lines.append(_line(label, np.array([clock.seconds(float(gap), data) for gap in gaps]), gaps))
    note = "best possible clock: constants and logarithms are left out"
    return Panel(
        "Time to an objective gap (first run)", "seconds", "F − F*", tuple(lines), x_log=True, y_log=True, note=note
    )


def _band(label: str, x: np.ndarray, runs: Sequence[np.ndarray], squared: bool = False) -> Series:
    shortest = min(map(len, runs))
    values = np.array([run[:shortest] for run in runs], dtype=np.float64)
    centre = np.sqrt((values**2).mean(axis=0)) if squared else values.mean(axis=0)
    at = _few(shortest)
    low, high = (values.min(axis=0), values.max(axis=0)) if len(runs) > 1 else (np.empty(0), np.empty(0))
    return Series(
        label,
        tuple(map(float, x[:shortest][at])),
        _numbers(centre[at]),
        _numbers(low[at]) if len(low) else (),
        _numbers(high[at]) if len(high) else (),
        emphasis=True,
    )


def _line(label: str, x: np.ndarray, values: np.ndarray) -> Series:
    count = min(len(x), len(values))
    at = _few(count)
    return Series(label, tuple(map(float, x[:count][at])), _numbers(values[:count][at]))


def _few(count: int) -> np.ndarray:
    """Places of at most so many points, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).astype(int))


def _numbers(values: np.ndarray) -> tuple[float | None, ...]:
    return tuple(float(value) if np.isfinite(value) and value < 1e290 else None for value in values)
