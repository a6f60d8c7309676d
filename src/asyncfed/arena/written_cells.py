"""Cells as TOML files, to run one again: `asyncfed run cell.toml` ends with the arena's own numbers."""

from __future__ import annotations

from asyncfed.analysis.toml_tables import split_tables
from asyncfed.arena.cells import cell_experiment, make_strategy
from asyncfed.arena.entry import Entry, cell_problem
from asyncfed.core.errors import AsyncFedError
from asyncfed.core.record import replace
from asyncfed.engine.stopping import Stopping
from asyncfed.experiment import Experiment, to_toml

STRATEGY = "[strategy]\n"


def entry_experiment(entry: Entry) -> Experiment | None:
    """The run of an entry on its first fresh seed, which stops where the target is reached; None if it was refused."""
    try:
        strategy = make_strategy(entry.strategy, entry.cell.problem, entry.rate, entry.steps)
        experiment = cell_experiment(entry.cell, strategy, entry.seeds[0], entry.limit)
    except (AsyncFedError, ArithmeticError, LookupError, TypeError, ValueError):
        return None
    _, targets = cell_problem(entry.cell.problem, entry.cell.split, entry.seeds[0])
    return replace(experiment, stopping=Stopping(metric="objective", target=targets.level))


def entry_toml(entry: Entry) -> str | None:
    """`entry_experiment` as TOML, its tables about the strategy last, so that all entries of a cell begin alike."""
    experiment = entry_experiment(entry)
    if experiment is None:
        return None
    try:
        return "\n".join(split_tables(to_toml(experiment), "strategy"))
    except TypeError:
        return None  # a part that cannot be written down


def split_toml(text: str) -> tuple[str, str]:
    """A text of `entry_toml` as that of the cell and that of the strategy."""
    before, _, after = text.partition("\n" + STRATEGY)
    return before, STRATEGY + after
