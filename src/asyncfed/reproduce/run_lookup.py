"""Looking up, among the figures, the runs a claim is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.experiment import Experiment
from asyncfed.presets import Reading
from asyncfed.reproduce.cached_runs import CachedRun
from asyncfed.reproduce.curves import Curve
from asyncfed.reproduce.figure_spec import Arm, FigureSpec, PanelSpec
from asyncfed.reproduce.figures import Runs

Mode = Literal["afl", "sync"]
STRATEGY_OF: dict[tuple[str, str], str] = {
    ("published", "afl"): "published",
    ("published", "sync"): "published_sync",
    ("text", "afl"): "afl",
    ("text", "sync"): "sync",
}


class Line(NamedTuple):
    """One arm of one panel, with its runs."""

    panel: PanelSpec
    arm: Arm
    runs: Runs

    @property
    def lowest(self) -> float:
        """The lowest client fraction."""
        return min(self.arm.fractions)

    @property
    def highest(self) -> float:
        """The highest client fraction."""
        return max(self.arm.fractions)

    def losses(self, fraction: float, x: str = "round") -> list[Curve]:
        """Seed by seed, the loss this panel draws."""
        return self.runs.curves(self.arm, fraction, self.panel.y, x)

    def averaged(self, x: str = "round") -> list[Curve]:
        """Seed by seed, the loss averaged over the fractions."""
        return self.runs.averaged(self.arm, self.panel.y, x)

    def columns(self, column: str) -> list[np.ndarray]:
        """Seed by seed, another column of the same runs."""
        return [curve.y for curve in self.runs.curves(self.arm, self.arm.fractions[0], column)]

    def experiments(self) -> Iterator[tuple[Experiment, CachedRun]]:
        """The runs of the first fraction, seed by seed."""
        for seed in self.runs.seeds:
            experiment = self.arm.experiment(self.arm.fractions[0], seed, shorter=self.runs.shorter)
            yield experiment, self.runs.cache[experiment]


class Study:
    """The figures at hand, by number, with their runs."""

    def __init__(self, figures: Mapping[int, tuple[FigureSpec, Runs]]) -> None:
        self._figures = figures

    def name(self, figure: int) -> str:
        """The name of a figure, by its number."""
        return self._figures[figure][0].name

    def line(self, figure: int, reading: Reading, mode: Mode = "afl") -> Line:
        """The first arm of a figure in this reading and mode."""
        spec, runs = self._figures[figure]
        wanted = STRATEGY_OF[reading, mode]
        for panel in spec.panels:
            for arm in panel.arms:
                if (arm.reading, arm.strategy) == (reading, wanted):
                    return Line(panel, arm, runs)
        raise ConfigError(
            f"{spec.name} draws no {mode} in the reading {reading}, but a claim is tested by it. Restore it."
        )

    def panel(self, figure: int, number: int) -> list[Line]:
        """All arms of one panel, counted from 0."""
        spec, runs = self._figures[figure]
        panel = spec.panels[number]
        return [Line(panel, arm, runs) for arm in panel.arms]
