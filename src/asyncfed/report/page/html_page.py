"""The report: one self-contained HTML page with verdicts, interactive figures, settings and how to rerun.

The only place that imports plotly, and only for its script, which is put into the page.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from io import BytesIO
from math import isfinite
from pathlib import Path
from string import Template
from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import to_plain
from asyncfed.report.figures.figure_data import FigureData, Panel
from asyncfed.report.figures.matplotlib_figures import draw_figure
from asyncfed.report.figures.series_style import Key, series_key, series_styles, y_axis_range
from asyncfed.report.page import html_parts as parts

DIGITS = 6
STATIC_DOTS_PER_INCH = 110


def write_page(
    out: Path,
    title: str,
    verdicts: Sequence[Mapping[str, Any]],
    figures: Sequence[FigureData],
    settings: Mapping[str, Any],
    tables: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    images: Mapping[str, bytes] | None = None,
    long_tables: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> Path:
    """Write the page to `out`, or to `out`/report.html if `out` does not end in .html, and return its path.

    A verdict has the keys id, claim, statistic, number, low, high, unit, verdict, reason, figure (a figure's name)
    and reading; what is missing or None is left out. `tables` are rows shown above the figures, by title,
    `long_tables` below them; tables of more than 12 rows are folded. Each item of `settings` becomes a section that
    can be opened: a text as it is, a mapping or a list of mappings as a table.
    `images` are PNG files of the printed figures, by name; those that are not given are drawn.
    """
    _check_names(verdicts, figures)
    page = Template(_asset("page.html")).substitute(
        title=parts.text(title),
        css=_asset("page.css"),
        js=_asset("page.js"),
        plotly=plotly_script(),
        summary=parts.summary(verdicts),
        verdicts=parts.verdict_table(verdicts, figures),
        tables="\n".join(parts.titled_table(name, rows) for name, rows in (tables or {}).items()),
        contents=parts.contents(figures),
        figures="\n".join(parts.figure_section(f, _static_image(f, images or {})) for f in figures),
        long_tables="\n".join(parts.titled_table(name, rows) for name, rows in (long_tables or {}).items()),
        settings=parts.settings_sections(settings),
        data=_embedded([_page_data(figure) for figure in figures]),
    )
    path = out if out.suffix == ".html" else out / "report.html"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"The page {path} cannot be written ({error.strerror}). Choose another place.") from error
    return path


def _check_names(verdicts: Sequence[Mapping[str, Any]], figures: Sequence[FigureData]) -> None:
    names = [figure.name for figure in figures]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"two figures are called {', '.join(twice)}; a page needs a name for each.")
    unknown = sorted({str(v["figure"]) for v in verdicts if v.get("figure") and v["figure"] not in names})
    if unknown:
        raise ConfigError(f"verdicts point to figures that are not on the page: {', '.join(unknown)}. It has: {names}.")


def plotly_script() -> str:
    """The script that draws the figures in the page. Call it before long work that ends in a page, to fail early."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ConfigError('The report page needs plotly: pip install "asyncfed[report]".') from error
    return str(get_plotlyjs())


def _asset(name: str) -> str:
    return (files("asyncfed.report.page") / "assets" / name).read_text(encoding="utf-8")


def _static_image(figure: FigureData, images: Mapping[str, bytes]) -> str:
    """The printed figure as a data address, for print and for browsers without scripts."""
    image = images[figure.name] if figure.name in images else _draw_png(figure)
    return "data:image/png;base64," + base64.b64encode(image).decode()


def _draw_png(figure: FigureData) -> bytes:
    file = BytesIO()
    draw_figure(figure).savefig(file, format="png", dpi=STATIC_DOTS_PER_INCH)
    return file.getvalue()


def _page_data(figure: FigureData) -> dict[str, Any]:
    """What the page's script draws from: the figure, with styles in a legend that series point into."""
    found = series_styles(figure)
    keys = list(found)
    legend = [{"group": group, "label": label, **to_plain(found[group, label])} for group, label in keys]
    panels = [_panel_data(panel, keys) for panel in figure.panels]
    return {"name": figure.name, "legend": legend, "panels": panels}


def _panel_data(panel: Panel, keys: list[Key]) -> dict[str, Any]:
    series = [
        {
            "key": keys.index(series_key(line)),
            "kind": line.kind,
            **{name: _rounded(getattr(line, name)) for name in ("x", "y", "low", "high")},
        }
        for line in panel.series
    ]
    words = {name: getattr(panel, name) for name in ("title", "x_label", "y_label", "x_log", "y_log")}
    return {**words, "series": series, "y_range": y_axis_range(panel)}


def _rounded(values: tuple[float | None, ...]) -> list[float | None]:
    """Six digits are more than an eye can see, and half the page."""
    return [None if v is None or not isfinite(v) else float(f"{v:.{DIGITS}g}") for v in values]


def _embedded(value: Any) -> str:
    """JSON that cannot end the script element around it."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
