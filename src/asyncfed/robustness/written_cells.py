"""Cells as TOML files, to run one again: `asyncfed run cell.toml` ends with the study's own numbers."""

from __future__ import annotations

from asyncfed.analysis.toml_tables import split_tables
from asyncfed.experiment import to_toml
from asyncfed.robustness.scenarios import Cell, cell_experiment

DEFENCE_TABLES = ("strategy", "trusted")
"""Tables of a written experiment that follow from the defence."""


def cell_texts(cell: Cell, seed: int) -> tuple[str, str, str]:
    """The run of a cell as TOML in three parts: of its scenario, of its defence and of its attack ("" if none)."""
    scenario, *defence, attack = split_tables(to_toml(cell_experiment(cell, seed)), *DEFENCE_TABLES, "attack")
    return scenario, "\n".join(text for text in defence if text), attack


def cell_toml(cell: Cell, seed: int) -> str:
    """The run of a cell as TOML."""
    return "\n".join(text for text in cell_texts(cell, seed) if text)
