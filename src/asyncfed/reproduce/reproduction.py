"""One reproduction, from the chosen figures to the page: what is to be run, running it, and writing it down."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import to_json, to_plain
from asyncfed.experiment import Experiment
from asyncfed.report.figures import figure_data as data_files
from asyncfed.report.figures.figure_data import FigureData
from asyncfed.report.figures.matplotlib_figures import save_png_and_pdf
from asyncfed.report.page.html_page import plotly_script, write_page
from asyncfed.reproduce.cached_runs import RunCache, cost, run_columns, run_key, write_columns
from asyncfed.reproduce.figure_spec import QUICK_SHORTER, FigureSpec, all_figures, select_figures
from asyncfed.reproduce.figures import Runs, figure_data
from asyncfed.reproduce.verdicts import Finding, assess_claims
from asyncfed.runs.cores import usable_cores
from asyncfed.runs.process_pool import Pool, open_pool
from asyncfed.version import __version__

DEFAULT_SEEDS = 5
QUICK_SEEDS = 2
ADVICE = (
    "Check that memory suffices, then run the same command again: it continues with what is left; --workers 1 needs no "
    "other process."
)
TITLE = "Asynchronous federated learning: the paper, reproduced and tested"


@dataclass(frozen=True)
class Reproduction:
    """What is to be reproduced: figures, how many seeds, how much shorter than the paper, and where it goes."""

    figures: tuple[FigureSpec, ...]
    seeds: int
    shorter: int
    out: Path

    @cached_property
    def cache(self) -> RunCache:
        """The finished runs."""
        return RunCache(self.out / "runs")

    @cached_property
    def experiments(self) -> dict[str, Experiment]:
        """The runs needed, each once, by its name in the cache; the longest first, so that no core waits at the end."""
        needed = [e for figure in self.figures for e in figure.experiments(self.seeds, self.shorter)]
        by_key = {run_key(experiment): experiment for experiment in needed}
        return dict(sorted(by_key.items(), key=lambda item: (-cost(item[1]), item[0])))

    def missing(self) -> list[Experiment]:
        """The runs still to be done."""
        return [experiment for experiment in self.experiments.values() if experiment not in self.cache]

    def runs_of(self, figure: FigureSpec) -> Runs:
        """The runs that a figure is drawn from."""
        return Runs(self.cache, figure.seeds(self.seeds), self.shorter)

    def command(self, figure: FigureSpec | None = None) -> str:
        """What to type to make all of this, or one figure, again."""
        parts = ["asyncfed reproduce"]
        if self.shorter > 1:
            parts.append("--quick")
        if figure is not None:
            parts.append(f"--only {figure.number}")
        return " ".join([*parts, f"--seeds {self.seeds}"])


def plan_reproduction(
    out: Path, *, quick: bool = False, only: list[str] | None = None, seeds: int | None = None
) -> Reproduction:
    """The reproduction with these options. `quick` has a tenth of the rounds, three fractions and two seeds."""
    seeds = (QUICK_SEEDS if quick else DEFAULT_SEEDS) if seeds is None else seeds
    if seeds < 1:
        raise ConfigError(f"seeds is {seeds}; it must be at least 1, and at least 2 for intervals.")
    figures = select_figures(all_figures(), only or [])
    plotly_script()  # if it is missing, say so now and not after minutes of work
    if quick:
        figures = [figure.quick() for figure in figures]
    return Reproduction(tuple(figures), seeds, QUICK_SHORTER if quick else 1, out)


def delete_finished_runs(reproduction: Reproduction) -> None:
    """Delete the finished runs, so that all are done again."""
    for experiment in reproduction.experiments.values():
        reproduction.cache.path(experiment).unlink(missing_ok=True)


def open_workers(count: int | None) -> Pool:
    """So many worker processes (default: one per usable core), or for 1 this process itself."""
    if count is not None and count < 1:
        raise ConfigError(f"workers is {count}; it must be at least 1.")
    return open_pool(usable_cores() if count is None else count, ADVICE)


def simulate_missing(reproduction: Reproduction, workers: Pool, watch: Callable[[int], None] | None = None) -> None:
    """Do the runs that are missing. `watch` is called with the cost (see `cached_runs.cost`) of all that is done."""
    done, cache = 0, reproduction.cache
    jobs = {workers.submit(run_columns, each): each for each in reproduction.missing()}
    for job in workers.finished(jobs):
        write_columns(job.result(), cache.path(jobs[job]))
        done += cost(jobs[job])
        if watch is not None:
            watch(done)


class Written(NamedTuple):
    """What a reproduction left behind."""

    page: Path
    findings: list[Finding]
    figures: list[FigureData]


def write_results(reproduction: Reproduction, workers: Pool) -> Written:
    """Figures' data, verdicts, settings, printed figures and the page, all from the finished runs."""
    out = reproduction.out
    figures, drawing = [], []
    for spec in reproduction.figures:
        figures.append(figure_data(spec, reproduction.runs_of(spec), reproduction.command(spec)))
        data_files.save(figures[-1], _data_path(out, spec.name))
        drawing.append(workers.submit(print_figure, out, spec.name))
    findings = assess_claims({figure.number: (figure, reproduction.runs_of(figure)) for figure in reproduction.figures})
    settings = _settings(reproduction)
    _write_json(out / "verdicts.json", findings)
    _write_json(out / "settings.json", settings)
    for job in drawing:
        job.result()
    images = {figure.name: (out / "figures" / f"{figure.name}.png").read_bytes() for figure in figures}
    page = write_page(out, TITLE, [to_plain(finding) for finding in findings], figures, settings, images=images)
    return Written(page, findings, figures)


def print_figure(out: Path, name: str) -> None:
    """Draw a figure from its data, as PNG and PDF."""
    save_png_and_pdf(data_files.load(_data_path(out, name)), out / "figures")


def _data_path(out: Path, name: str) -> Path:
    return out / "data" / f"{name}.json"


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_json(value) + "\n")


def _settings(reproduction: Reproduction) -> dict[str, Any]:
    cache = reproduction.cache
    experiments = reproduction.experiments
    return {
        "command": reproduction.command(),
        "versions": {"asyncfed": __version__, "python": platform.python_version(), "numpy": np.__version__},
        "seeds": reproduction.seeds,
        "rounds divided by": reproduction.shorter,
        "figures": {
            figure.name: {
                "rerun": reproduction.command(figure),
                "seeds": list(figure.seeds(reproduction.seeds)),
                "runs": len({run_key(e) for e in figure.experiments(reproduction.seeds, reproduction.shorter)}),
                "data sha256": _file_sha256(_data_path(reproduction.out, figure.name)),
                "description": to_plain(figure),
            }
            for figure in reproduction.figures
        },
        "runs": {key: dict(cache[experiments[key]].outcome.sha256) for key in sorted(experiments)},
    }


def _file_sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
