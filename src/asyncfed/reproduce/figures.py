"""From a figure's description and the finished runs to what is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.report.figures.figure_data import FigureData, Panel, Series
from asyncfed.reproduce.cached_runs import CachedRun, RunCache
from asyncfed.reproduce.curves import Curve, curve_of, drawn, mean_curve, places, series_of, spread_over_seeds
from asyncfed.reproduce.figure_spec import Arm, FigureSpec, PanelSpec
from asyncfed.reproduce.published_curves import drawn_points
from asyncfed.reproduce.run_measures import measure_named, merge_shares, seconds_per_ticket

X_LABELS = {
    "round": "round",
    "elapsed": "virtual time, seconds",
    "bytes": "bytes down and up",
    "energy": "energy of computing, joules",
}


class Runs:
    """The finished runs behind one figure, found by arm, fraction and varied value; one per seed."""

    def __init__(self, cache: RunCache, seeds: range, shorter: int) -> None:
        self.cache = cache
        self.seeds = seeds
        self.shorter = shorter

    def of(self, arm: Arm, fraction: float, value: Any = None) -> list[CachedRun]:
        """The runs of an arm with one fraction and varied value, seed by seed."""
        return [self.cache[arm.experiment(fraction, seed, value, self.shorter)] for seed in self.seeds]

    def curves(self, arm: Arm, fraction: float, column: str, x: str = "round") -> list[Curve]:
        """A column of these runs against an axis, seed by seed."""
        return [curve_of(run.outcome, column, x, arm.scale) for run in self.of(arm, fraction)]

    def averaged(self, arm: Arm, column: str, x: str = "round") -> list[Curve]:
        """Seed by seed, the mean over the arm's fractions."""
        of_fractions = [self.curves(arm, fraction, column, x) for fraction in arm.fractions]
        return [mean_curve(of_seed) for of_seed in zip(*of_fractions, strict=True)]


def figure_data(spec: FigureSpec, runs: Runs, rerun: str) -> FigureData:
    """What is drawn: the panels of a figure, from its runs; `rerun` is the command that makes it again."""
    panels = tuple(_PANELS[panel.shows](panel, runs) for panel in spec.panels)
    return FigureData(name=spec.name, title=spec.title, caption=spec.caption, panels=panels, rerun=rerun)


def _axes(spec: PanelSpec, series: list[Series], notes: list[str], x_label: str = "") -> Panel:
    return Panel(
        title=spec.title,
        x_label=spec.x_label or x_label,
        y_label=spec.y_label,
        series=tuple(series),
        x_log=spec.x_log,
        y_log=spec.y_log,
        note=" ".join(filter(None, [spec.note, *notes])),
    )


# ---- curves ----------------------------------------------------------------------------------------------------


def _curves_panel(spec: PanelSpec, runs: Runs) -> Panel:
    series: list[Series] = []
    for arm in spec.arms:
        column = arm.y or spec.y
        if spec.average:
            series.append(series_of(runs.averaged(arm, column, spec.x), arm.label, spec.x, spec.band))
            continue
        for fraction in arm.fractions:
            label = arm.label if len(arm.fractions) == 1 else f"{fraction:.0%}"
            series.append(series_of(runs.curves(arm, fraction, column, spec.x), label, spec.x, spec.band))
            if spec.published_points:
                series += _published_points(arm, fraction, label, series[-1].x[-1])
        if spec.mean:
            series.append(series_of(runs.averaged(arm, column, spec.x), spec.mean, spec.x, spec.band, emphasis=True))
    notes = [_heterogeneity(arm, runs) for arm in spec.arms] if spec.heterogeneity else []
    return _axes(spec, series, notes, X_LABELS[spec.x])


def _heterogeneity(arm: Arm, runs: Runs) -> str:
    found = arm.experiment(arm.fractions[0], runs.seeds[0], shorter=runs.shorter).measure_heterogeneity()
    return f"{arm.label}: {found.verdict}."


def _published_points(arm: Arm, fraction: float, label: str, last_round: float) -> list[Series]:
    shown = drawn_points(arm.preset, arm.strategy, fraction, last_round)
    if not shown:
        return []
    x, y = zip(*shown, strict=True)
    return [Series(label=f"published run, {fraction:.0%}", x=places(x), y=drawn(y), group=label, kind="points")]


# ---- sweeps ----------------------------------------------------------------------------------------------------


def _sweep_panel(spec: PanelSpec, runs: Runs) -> Panel:
    found = [_sweep(arm, spec, runs) for arm in spec.arms]
    return _axes(spec, [series for series, _ in found], [note for _, note in found])


def swept(arm: Arm, measure: str, runs: Runs) -> np.ndarray:
    """The measure of each run, a row per seed and a column per varied value."""
    of, fraction = measure_named(measure), arm.fractions[0]
    rows = []
    for seed in runs.seeds:
        experiments = [arm.experiment(fraction, seed, value, runs.shorter) for value in arm.values]
        rows.append([of(experiment, runs.cache[experiment]) for experiment in experiments])
    return np.array(rows)


def _sweep(arm: Arm, spec: PanelSpec, runs: Runs) -> tuple[Series, str]:
    """The line of an arm, and a sentence about the runs that diverged, if any did."""
    measured = swept(arm, spec.y, runs)
    x = np.array(arm.places, np.float64) if spec.x == "varied" else swept(arm, spec.x, runs).mean(axis=0)
    diverged = np.isnan(measured).sum(axis=0)
    if spec.relative:
        measured = measured / measured[:, :1]
    found = spread_over_seeds(measured, spec.band)
    several = len(runs.seeds) > 1
    series = Series(
        label=arm.label,
        x=places(x),
        y=drawn(found.middle),
        low=drawn(found.low) if several else (),
        high=drawn(found.high) if several else (),
        group=arm.label,
    )
    where = ", ".join(f"{n} of {len(measured)} at {place:g}" for n, place in zip(diverged, x, strict=True) if n)
    return series, f"{arm.label}: runs diverged ({where})." if where else ""


# ---- participation ---------------------------------------------------------------------------------------------


def _participation_panel(spec: PanelSpec, runs: Runs) -> Panel:
    return _axes(spec, [_shares(arm, runs) for arm in spec.arms], [])


def _shares(arm: Arm, runs: Runs) -> Series:
    """A dot per client and seed: how long its tickets take, and its share of all merges."""
    experiments = [arm.experiment(arm.fractions[0], seed, shorter=runs.shorter) for seed in runs.seeds]
    seconds = np.concatenate([seconds_per_ticket(experiment) for experiment in experiments])
    shares = np.concatenate([merge_shares(runs.cache[experiment]) for experiment in experiments])
    order = np.argsort(seconds, kind="stable")
    x, y = seconds[order], shares[order]
    return Series(label=arm.label, x=places(x), y=drawn(y), group=arm.label, kind="points")


_PANELS = {"curves": _curves_panel, "sweep": _sweep_panel, "participation": _participation_panel}
