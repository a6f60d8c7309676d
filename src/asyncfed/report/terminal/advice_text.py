"""A recommendation for the terminal: sentences, the table of finalists, their settings."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from asyncfed.advice.recommendation import Recommendation, settings_text
from asyncfed.advice.sentences import finalist_rows, sentences, target_sentence

TIGHT: dict[str, Any] = {"box": box.SIMPLE_HEAD, "show_edge": False, "padding": (0, 1, 0, 0)}


def advice_text(advice: Recommendation) -> Group:
    """What is recommended and why, to be printed by rich."""
    first, *others = sentences(advice)
    rows = finalist_rows(advice)
    table = Table(title="finalists (* recommended)", title_justify="left", **TIGHT)
    for number, name in enumerate(rows[0]):
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row.values()))
    settings = Table(title="settings", title_justify="left", show_header=False, **TIGHT)
    for label in advice.ranking:
        settings.add_row(Text(label), Text(settings_text(advice.finalists[label].settings)))
    notes = [Text(note, style="dim") for note in (target_sentence(advice), *advice.notes)]
    return Group(Text(first, style="bold"), *map(Text, others), table, settings, *notes)
