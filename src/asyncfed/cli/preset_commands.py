"""The command that lists what has a name: presets, strategies, delays, data and problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from asyncfed.cli.output import console

if TYPE_CHECKING:
    from asyncfed.problems.linear import LinearModel


def presets(name: Annotated[str | None, typer.Argument(help="Print this preset as TOML.")] = None) -> None:
    """List presets, strategies, delays, data and problems by name, or print a preset as TOML."""
    from asyncfed.experiment import to_toml
    from asyncfed.presets import BUILT_IN, DELAYS, PRESETS, PROBLEMS, STRATEGIES, preset

    if name is not None:
        print(to_toml(preset(name)()))
        return
    for title, entries in (("preset", PRESETS), ("strategy", STRATEGIES), ("delays", DELAYS), ("data", BUILT_IN)):
        _print_names(title, {key: words for key, (words, *_) in entries.items()})
    _print_names("problem", {key: _model_words(model) for key, model in PROBLEMS.items()})


def _model_words(model: LinearModel) -> str:
    penalty = f", l2 penalty {model.l2:g}" if model.l2 else ""
    return f"linear model, loss {model.loss}{penalty}"


def _print_names(title: str, words: Mapping[str, str]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title, "what it is", title_justify="left", box=None, pad_edge=False)
    for key, text in words.items():
        table.add_row(key, escape(text))
    console.print(table, "")
