"""What a figure shows, as its TOML file says it: panels, the arms drawn in each, and the runs an arm needs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import Config, ValidationError, field, from_plain, replace
from asyncfed.core.types import Budget
from asyncfed.engine.evaluation import Evaluation
from asyncfed.experiment import Experiment, changed
from asyncfed.presets import Rate, Reading, delays_named, preset, strategy_like

FOLDER = Path(__file__).parent / "experiments"
QUICK_FRACTIONS = (0.2, 0.5, 0.9)
QUICK_SHORTER = 10


class Arm(Config):
    """One line of a panel: a preset in one reading, run by one strategy, for each client fraction.

    `settings` are dotted keys of the experiment set anew. `vary` names one more, which takes each of `values` in turn;
    `at` says where each is drawn (default: the values). `y` and `scale` (a factor) replace the panel's.
    """

    label: str
    preset: Literal["regression", "svm"]
    reading: Reading
    strategy: str
    fractions: tuple[float, ...] = (0.5,)
    rounds: int | None = None
    delays: str = "laptop"
    rate: Rate = "own"
    settings: dict[str, Any] = field(default_factory=dict)
    vary: str = ""
    values: tuple[Any, ...] = ()
    at: tuple[float, ...] = ()
    y: str = ""
    scale: float = 1.0

    def __post_init__(self) -> None:
        if bool(self.vary) != bool(self.values):
            raise ConfigError(f'arm "{self.label}": `vary` names a key and `values` lists what it takes; give both.')
        if self.at and len(self.at) != len(self.values):
            raise ConfigError(
                f'arm "{self.label}": {len(self.at)} places `at`, {len(self.values)} `values`; match them.'
            )
        if not self.fractions:
            raise ConfigError(f'arm "{self.label}": fractions is empty; give at least one, such as [0.5].')

    @property
    def places(self) -> tuple[float, ...]:
        """Where each of `values` is drawn."""
        return self.at or self.values

    def experiment(self, fraction: float, seed: int, value: Any = None, shorter: int = 1) -> Experiment:
        """The run of this arm with one fraction, seed and varied value; `shorter` divides its rounds."""
        make, delays = preset(self.preset), delays_named(self.delays)
        if self.rate == "own":
            plain = make(strategy=self.strategy, reading=self.reading, fraction=fraction, seed=seed, delays=delays)
        else:
            plain = make(strategy="afl", reading=self.reading, fraction=fraction, seed=seed, delays=delays)
            plain = replace(plain, strategy=strategy_like(self.strategy, plain.strategy, self.rate))
        rounds = max(2, (self.rounds or plain.budget.rounds or 1) // shorter)
        plain = replace(plain, budget=Budget(rounds=rounds), evaluation=Evaluation(distance=False))
        settings = self.settings | ({self.vary: value} if self.vary else {})
        return changed(plain, settings) if settings else plain

    def experiments(self, seeds: Sequence[int], shorter: int) -> list[Experiment]:
        """All runs of this arm."""
        return [
            self.experiment(fraction, seed, value, shorter)
            for fraction in self.fractions
            for value in self.values or (None,)
            for seed in seeds
        ]


class PanelSpec(Config):
    """One pair of axes. `shows` says what is made of its arms:

    curves         column `y` against `x` (round, elapsed, bytes, energy), a line per fraction, or with `average` one
                   line per arm; `mean` names a bold line that averages an arm's fractions
    sweep          the measure `y` of whole runs against what the arms vary, or against the measure `x`
    participation  each client's share of the merges against its slowness
    """

    title: str
    arms: tuple[Arm, ...]
    y: str
    y_label: str
    shows: Literal["curves", "sweep", "participation"] = "curves"
    x: str = "round"
    x_label: str = ""
    band: Literal["interval", "range"] = "interval"
    average: bool = False
    mean: str = ""
    relative: bool = False
    published_points: bool = False
    heterogeneity: bool = False
    x_log: bool = False
    y_log: bool = True
    note: str = ""


class FigureSpec(Config):
    """A figure; `most_seeds` bounds the seeds of a figure whose runs would otherwise take too long."""

    title: str
    caption: str
    panels: tuple[PanelSpec, ...]
    most_seeds: int | None = None
    name: str = ""

    @property
    def number(self) -> int:
        """The number in its name."""
        return int(self.name.split("_")[0])

    def seeds(self, asked: int) -> range:
        """The seeds of this figure if so many are asked for."""
        return range(asked if self.most_seeds is None else min(asked, self.most_seeds))

    def experiments(self, asked_seeds: int, shorter: int) -> list[Experiment]:
        """All runs this figure needs."""
        seeds = self.seeds(asked_seeds)
        return [e for panel in self.panels for arm in panel.arms for e in arm.experiments(seeds, shorter)]

    def quick(self) -> FigureSpec:
        """The same figure with fewer fractions and varied values."""
        return replace(self, panels=tuple(replace(p, arms=tuple(map(_fewer, p.arms))) for p in self.panels))


def _fewer(arm: Arm) -> Arm:
    kept = tuple(fraction for fraction in arm.fractions if fraction in QUICK_FRACTIONS)
    values, at = _ends_and_middle(arm.values), _ends_and_middle(arm.at)
    return replace(arm, fractions=kept or arm.fractions[:1], values=values, at=at)


def _ends_and_middle(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return values if len(values) <= 3 else (values[0], values[len(values) // 2], values[-1])


# ---- the written form ------------------------------------------------------------------------------------------


def all_figures(folder: Path = FOLDER) -> list[FigureSpec]:
    """Every figure, in the paper's order."""
    return [read_figure(path) for path in sorted(folder.glob("*.toml"))]


def read_figure(path: Path) -> FigureSpec:
    """The figure a TOML file describes; its name is the file's."""
    try:
        plain = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read as TOML ({error}). Mend or restore the file.") from error
    if not re.fullmatch(r"\d+_\w+", path.stem):
        raise ConfigError(f"{path} must be named NUMBER_NAME.toml, such as 01_max_delay_regression.toml; rename it.")
    try:
        return replace(from_plain(plain, FigureSpec), name=path.stem)
    except ValidationError as error:
        raise ConfigError(f"{path}: {_explained(str(error))}") from error


def _explained(message: str) -> str:
    unknown = re.search(r"unknown field `([^`]*)`(?: - at `\$\.?(.*)`)?", message)
    if not unknown:
        return message
    key, path = unknown[1], unknown[2] or ""
    kind: Any = Arm if "arms" in path else PanelSpec if "panels" in path else FigureSpec
    return f"[{path or 'the figure'}] has no key `{key}`. {did_you_mean(key, kind.__struct_fields__)}"


def select_figures(figures: Sequence[FigureSpec], only: Sequence[str]) -> list[FigureSpec]:
    """The figures asked for by number or by name (with or without its number); all of them if none is asked for."""
    if not only:
        return list(figures)
    wanted = {_named(figures, word).name for word in only}
    return [figure for figure in figures if figure.name in wanted]


def _named(figures: Sequence[FigureSpec], word: str) -> FigureSpec:
    for figure in figures:
        short = figure.name.partition("_")[2]
        if word in (figure.name, short) or (word.isdigit() and int(word) == figure.number):
            return figure
    numbers = f"Figures are numbered {figures[0].number} to {figures[-1].number}."
    names = [figure.name.partition("_")[2] for figure in figures]
    raise ConfigError(f'There is no figure "{word}". {numbers if word.isdigit() else did_you_mean(word, names)}')
