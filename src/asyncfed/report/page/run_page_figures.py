"""The figures of a page about runs: losses and accuracies, the objective on four axes, staleness, participation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite

import numpy as np

from asyncfed.analysis.evaluation_axis import axis_positions
from asyncfed.analysis.protocols import AXES, Axis, ReportedRun
from asyncfed.report.figures.figure_data import FigureData, Panel, Series
from asyncfed.report.strategy_label import strategy_label
from asyncfed.report.units import Scale, choose_scale

MOST_CLIENTS = 50
"""Above it, participation is shown as how many clients had how many updates."""

LOSSES = {"objective": "training", "validation_loss": "validation", "test_loss": "test"}
ACCURACIES = {"accuracy": "training", "validation_accuracy": "validation", "test_accuracy": "test"}
"""What is drawn if it was measured; equal names have equal colours in both panels."""

TITLES: dict[Axis, str] = {
    "round": "Per round",
    "elapsed": "On the clock",
    "bytes": "Per byte sent",
    "energy": "Per joule",
}


def run_figures(runs: Mapping[str, ReportedRun], rerun: str = "") -> list[FigureData]:
    """The figures of one or several runs, by label; runs of one strategy make a group."""
    measured = {label: run for label, run in runs.items() if "objective" in run.evaluations}  # not private runs
    loss = FigureData(
        "loss",
        "Objective per round, second, byte and joule",
        "The same evaluations on four axes. Bytes count both directions; joules are those of computing.",
        tuple(_loss_panel(measured, axis) for axis in AXES),
        rerun,
    )
    return [
        *_measured_figure(runs, rerun),
        *([loss] if measured else []),
        FigureData(
            "staleness",
            "Staleness of merged updates",
            "How many versions were merged between a client's download and the merge of its update.",
            (
                _round_panel(runs, "Mean of each round", "staleness_mean"),
                _round_panel(runs, "Largest of each round", "staleness_max"),
            ),
            rerun,
        ),
        FigureData(
            "participation",
            "Participation",
            "A client with more merged updates weighs more in the objective that is minimised in effect.",
            (_participation_panel(runs),),
            rerun,
        ),
    ]


def _measured_figure(runs: Mapping[str, ReportedRun], rerun: str) -> list[FigureData]:
    """Training and held-out rows: losses and accuracies by round; nothing if the objective is all that was measured."""
    panels = [
        Panel(title, "round", y_label, lines, y_log=y_log, note=_kept_note(runs) if title == "Loss" else "")
        for title, y_label, names, y_log in (
            ("Loss", "loss", LOSSES, True),
            ("Accuracy", "share of rows that are right", ACCURACIES, False),
        )
        if len(lines := _measured_lines(runs, names)) > len(runs) or (lines and names is ACCURACIES)
    ]
    if not panels:
        return []
    caption = "The same model on the rows it was trained on and on rows that were held out, mean over clients."
    return [FigureData("measured", "Training and held-out rows", caption, tuple(panels), rerun)]


def _measured_lines(runs: Mapping[str, ReportedRun], names: Mapping[str, str]) -> tuple[Series, ...]:
    lines = []
    for label, run in runs.items():
        group = label if len(runs) > 1 else ""
        rounds = run.evaluations["round"]
        for name, words in names.items():
            if name in run.evaluations:
                lines.append(Series(words, _plain(rounds), _known(run.evaluations[name]), group=group))
        if names is LOSSES and len(runs) == 1 and run.kept < len(rounds) - 1:
            for name in ("validation_loss", "objective"):
                if name in run.evaluations:
                    x, y = float(rounds[run.kept]), float(run.evaluations[name][run.kept])
                    lines.append(Series("model kept", (x,), _known([y]), kind="points"))
                    break
    return tuple(lines)


def _kept_note(runs: Mapping[str, ReportedRun]) -> str:
    """Which model a run is left with, where it is not the last."""
    kept = [
        f"{label}: the model of round {int(run.evaluations['round'][run.kept])}"
        for label, run in runs.items()
        if len(run.evaluations["round"]) and run.kept < len(run.evaluations["round"]) - 1
    ]
    return f"Kept, because it was the best measured: {'; '.join(kept)}." if kept else ""


def _loss_panel(runs: Mapping[str, ReportedRun], axis: Axis) -> Panel:
    places = {label: axis_positions(axis, run.evaluations, run.rounds) for label, run in runs.items()}
    scale = choose_scale(axis, max((float(x[-1]) for x in places.values() if len(x)), default=1.0))
    lines = tuple(
        _series(label, run, _in(scale, places[label]), run.evaluations["objective"]) for label, run in runs.items()
    )
    return Panel(TITLES[axis], scale.label, "objective", lines, y_log=True)


def _in(scale: Scale, values: np.ndarray) -> np.ndarray:
    return values / scale.divisor


def _round_panel(runs: Mapping[str, ReportedRun], title: str, column: str) -> Panel:
    lines = tuple(_series(label, run, run.rounds["round"], run.rounds[column]) for label, run in runs.items())
    return Panel(title, "round", "versions since download", lines)


def _participation_panel(runs: Mapping[str, ReportedRun]) -> Panel:
    merges = {label: run.participation_of_known() for label, run in runs.items()}
    if max(int(run.header["num_clients"]) for run in runs.values()) <= MOST_CLIENTS:
        bars = tuple(_bars(label, runs[label], range(len(counts)), counts) for label, counts in merges.items())
        return Panel("Updates of each client", "client", "merged updates", bars)
    bars = tuple(_bars(label, runs[label], *np.unique(counts, return_counts=True)) for label, counts in merges.items())
    return Panel("Clients by number of updates", "merged updates", "clients", bars)


def _bars(label: str, run: ReportedRun, x: Iterable[float], y: np.ndarray) -> Series:
    return Series(label, _plain(x), _known(y), group=_group(run), kind="bar")


def _series(label: str, run: ReportedRun, x: np.ndarray, y: np.ndarray) -> Series:
    return Series(label, _plain(x), _known(y), group=_group(run))


def _group(run: ReportedRun) -> str:
    return strategy_label(run.header["experiment"]["strategy"])


def _plain(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _known(values: Iterable[float]) -> tuple[float | None, ...]:
    """A run that diverged has objectives that are no numbers: gaps."""
    return tuple(value if isfinite(value) else None for value in _plain(values))
