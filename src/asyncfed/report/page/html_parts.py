"""The parts of the report page as HTML. Every text that comes from outside passes through `text`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from numbers import Real
from typing import Any

from asyncfed.analysis.plain_text import format_number
from asyncfed.report.figures.figure_data import FigureData
from asyncfed.report.figures.series_style import SeriesStyle, legend_label, series_styles

MOST_ROWS = 12
"""A table of more rows is folded until the reader opens it."""

MARKS = {
    "holds": ("good", "✓"),
    "finished": ("good", "✓"),
    "holds per round but not in time": ("partly", "◐"),
    "interrupted": ("partly", "◐"),
    "does not hold": ("bad", "✗"),
    "diverged": ("bad", "✗"),
    "starved": ("bad", "✗"),
    "undecided": ("unknown", "?"),
}
"""Class and symbol of a verdict, so that colour is never all there is; a word that is not here gets a dot."""


def text(value: Any) -> str:
    """A value as text that HTML shows as it is."""
    return escape(str(value), quote=True)


def number(value: Any) -> str:
    """A number to three digits, anything else as it is, None as nothing.

    >>> number(0.040312), number("never"), number(None), number(True), number(12)
    ('0.0403', 'never', '', 'True', '12')
    """
    if value is None:
        return ""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return text(format_number(float(value)) if is_number and not isinstance(value, int) else value)


# ---- verdicts --------------------------------------------------------------------------------------------------


def mark(verdict: str) -> str:
    """A verdict as a pill: symbol, words and colour."""
    kind, symbol = MARKS.get(verdict, ("unknown", "•"))
    return f'<span class="verdict {kind}"><span aria-hidden="true">{symbol}</span> {text(verdict)}</span>'


def summary(verdicts: Sequence[Mapping[str, Any]]) -> str:
    """How many of each verdict, the best first."""
    counts = Counter(str(verdict["verdict"]) for verdict in verdicts)
    words = [word for word in MARKS if word in counts] + [word for word in counts if word not in MARKS]
    items = "".join(f"<li>{mark(word)} × {counts[word]}</li>" for word in words)
    return f'<ul class="count" aria-label="How many of each verdict">{items}</ul>' if items else ""


def verdict_table(verdicts: Sequence[Mapping[str, Any]], figures: Sequence[FigureData]) -> str:
    """A row for each verdict, with a link to its figure; nothing if there are none."""
    if not verdicts:
        return ""
    titles = {figure.name: figure.title for figure in figures}
    rows = "".join(_verdict_row(verdict, titles) for verdict in verdicts)
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("Claim", "Number", "Verdict", "Why", "Figure"))
    return (
        '<section id="verdicts"><h2>Verdicts</h2><table class="wide verdicts">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></section>"
    )


def _verdict_row(verdict: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    given = {key: value for key, value in verdict.items() if value is not None and value != ""}
    reading = f"<small>reading: {text(given['reading'])}</small>" if "reading" in given else ""
    figure = given.get("figure")
    link = f'<a href="#figure-{text(figure)}">{text(titles[figure])}</a>' if figure else ""
    cells = [("Number", _measured(given)), ("Verdict", mark(str(given["verdict"])))]
    cells += [("Why", text(given.get("reason", ""))), ("Figure", link)]
    row = "".join(f'<td data-column="{name}">{cell}</td>' for name, cell in cells)
    return f'<tr id="verdict-{text(given["id"])}"><th scope="row">{text(given["claim"])}{reading}</th>{row}</tr>'


def _measured(given: Mapping[str, Any]) -> str:
    if "number" not in given:
        return ""
    interval = f" ({number(given['low'])} to {number(given['high'])})" if {"low", "high"} <= given.keys() else ""
    unit = f" {text(given['unit'])}" if "unit" in given else ""
    statistic = f"<small>{text(given['statistic'])}</small>" if "statistic" in given else ""
    return f"{number(given['number'])}{interval}{unit}{statistic}"


# ---- figures ---------------------------------------------------------------------------------------------------


def contents(figures: Sequence[FigureData]) -> str:
    """Links to all figures; nothing if there are none."""
    items = "".join(f'<li><a href="#figure-{text(f.name)}">{text(f.title)}</a></li>' for f in figures)
    if not items:
        return ""
    return f'<nav aria-label="Figures"><h2 class="contents-title">Figures</h2><ol class="contents">{items}</ol></nav>'


def figure_section(figure: FigureData, image: str) -> str:
    """Title, caption, buttons, a place for each plot, the printed figure, notes and the command that makes it again."""
    name, title = text(figure.name), text(figure.title)
    plots = "".join(
        f'<div><h3>{text(panel.title)}</h3><div class="plot" role="img" aria-label="{text(panel.title)}: '
        f'{text(panel.y_label)} against {text(panel.x_label)}"></div></div>'
        for panel in figure.panels
    )
    notes = "".join(f'<p class="notes">{text(panel.note)}</p>' for panel in figure.panels if panel.note)
    rerun = f"<p>Make it again: <code>{text(figure.rerun)}</code></p>" if figure.rerun else ""
    return (
        f'<section class="figure" id="figure-{name}"><h2>{title}</h2><p class="caption">{text(figure.caption)}</p>'
        f'{_buttons(figure)}<div class="plots" data-panels="{len(figure.panels)}">{plots}</div>'
        f'<img class="static" src="{image}" alt="{title}. {text(figure.caption)}">'
        f'{notes}{rerun}<button type="button" class="download">Download the data (CSV)</button></section>'
    )


def _buttons(figure: FigureData) -> str:
    found = series_styles(figure)
    members = Counter(group for group, _ in found)
    sets = '<button type="button" class="set" data-set="all">All</button>'
    sets += '<button type="button" class="set" data-set="none">None</button>'
    groups = [group for group, count in members.items() if group and count > 1 and len(members) > 1]
    sets += "".join(
        f'<button type="button" class="set" data-set="group" data-group="{text(group)}">{text(group)}</button>'
        for group in groups
    )
    chips = "".join(
        f'<button type="button" class="series" data-key="{key}" aria-pressed="true">{_swatch(style)}'
        f"{text(legend_label(named))}</button>"
        for key, (named, style) in enumerate(found.items())
    )
    return (
        f'<div class="buttons" role="group" aria-label="Series to show">{sets if len(found) > 1 else ""}{chips}</div>'
    )


def _swatch(style: SeriesStyle) -> str:
    shapes = {
        "line": f'<line x1="1" x2="29" y1="6" y2="6" stroke="{style.colour}" stroke-width="{style.width + 0.5}" '
        f'stroke-dasharray="{" ".join(str(length * style.width) for length in style.dash)}"/>',
        "points": f'<circle cx="15" cy="6" r="4" fill="{style.colour}" stroke="#333333"/>',
        "bar": f'<rect x="9" width="12" height="12" fill="{style.colour}"/>',
    }
    return f'<svg width="30" height="12" aria-hidden="true">{shapes[style.kind]}</svg>'


# ---- tables and settings ---------------------------------------------------------------------------------------


def titled_table(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A section with this title and a table of these rows, folded if there are many."""
    shown = table(rows)
    if len(rows) > MOST_ROWS:
        shown = f"<details><summary>{len(rows)} rows</summary>{shown}</details>"
    return f"<section><h2>{text(title)}</h2>{shown}</section>"


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the columns of all of them, in the order in which they first appear."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    heads = "".join(f'<th scope="col">{text(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td data-column="{text(c)}">{number(row.get(c))}</td>' for c in columns) + "</tr>"
        for row in rows
    )
    return f'<table class="wide"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def settings_sections(settings: Mapping[str, Any]) -> str:
    """A section in which each item can be opened; nothing if there are none."""
    sections = "".join(
        f"<details><summary>{text(name)}</summary>{_value(value)}</details>" for name, value in settings.items()
    )
    return f"<section><h2>Settings, versions, seeds and digests</h2>{sections}</section>" if sections else ""


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        rows = "".join(f'<tr><th scope="row">{text(name)}</th><td>{_value(of)}</td></tr>' for name, of in value.items())
        return f"<table><tbody>{rows}</tbody></table>"
    if isinstance(value, list | tuple):
        if value and all(isinstance(item, Mapping) for item in value):
            return table(value)
        return text(", ".join(map(str, value)))
    if isinstance(value, str) and "\n" in value:
        return f"<pre>{text(value)}</pre>"
    return text("" if value is None else value)
