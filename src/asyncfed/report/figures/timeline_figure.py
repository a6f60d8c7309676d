"""The timeline of a run: a row a client, a bar a ticket, a mark a merge."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from asyncfed.analysis.protocols import ReportedRun
from asyncfed.core.record import Record
from asyncfed.report.figures import axes_style, colours
from asyncfed.report.strategy_label import strategy_label

MOST_BARS = 600
MOST_CLIENTS = 60
COLOURS = {
    "reported": colours.LINE_COLOURS[0],
    "lost": colours.LINE_COLOURS[1],
    "skipped": colours.LINE_COLOURS[2],
    "in flight": colours.FAINT,
}
MERGED = colours.INK

Columns = Mapping[str, Sequence[Any]]


class Bar(Record):
    """A ticket from its dispatch to what became of it."""

    client: int
    begin: float
    end: float
    outcome: str


def bars_of(events: Columns) -> tuple[list[Bar], list[tuple[float, int]]]:
    """Every ticket as a bar, in the order of dispatch, and every merged ticket as (time, client)."""
    out: dict[int, tuple[int, float]] = {}
    ended: dict[int, Bar] = {}
    merges: list[tuple[float, int]] = []
    last = max(events["time"], default=0.0)
    rows = zip(*(events[name] for name in ("time", "kind", "ticket", "client", "detail")), strict=True)
    for time, kind, ticket, client, detail in rows:
        if kind == "dispatch":
            out[ticket] = (client, time)
        elif kind in ("report", "lost", "skipped"):
            ended[ticket] = Bar(client, out[ticket][1], time, "reported" if kind == "report" else kind)
        elif kind == "leave":
            gone = [number for number, (owner, _) in out.items() if owner == client and number not in ended]
            ended |= {number: Bar(client, out[number][1], time, "lost") for number in gone}
        elif kind == "merge":
            tickets = [ticket] if ticket is not None else json.loads(detail)["tickets"]
            merges += [(time, out[number][0]) for number in tickets]
    return [ended.get(t, Bar(client, begin, last, "in flight")) for t, (client, begin) in out.items()], merges


def draw_timeline(run: ReportedRun, events: Columns) -> Figure:
    """A row a client; bars run from dispatch to report or loss, and marks show when a client's update was merged.

    Of a long run the first tickets are shown, and the subtitle says so.
    """
    bars, merges = bars_of(events)
    shown = [bar for bar in bars[:MOST_BARS] if bar.client < MOST_CLIENTS]
    until = max((bar.end for bar in shown), default=1.0) if len(bars) <= MOST_BARS else bars[MOST_BARS].begin
    marks = [(time, client) for time, client in merges if time <= until and client < MOST_CLIENTS]
    clients = 1 + max((bar.client for bar in shown), default=0)
    figure = axes_style.new_figure((axes_style.FULL_PAGE[0], 1.6 + 0.32 * clients))
    axes = figure.subplots()
    axes_style.format_axes(axes, "", "time, s" if "live" in run.header else "virtual time, s", "client")
    for outcome, colour in COLOURS.items():
        for bar in shown:
            if bar.outcome == outcome:
                width = min(bar.end, until) - bar.begin
                axes.barh(bar.client, width, 0.6, bar.begin, color=colour, edgecolor="white", linewidth=0.4)
    axes.plot([time for time, _ in marks], [client + 0.38 for _, client in marks], "^", color=MERGED, markersize=3.0)
    axes.set_ylim(clients - 0.4, -0.6)
    axes.set_xlim(0.0, 1.01 * until)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(False, axis="y")
    outcomes = {bar.outcome for bar in shown}
    named = {outcome: colour for outcome, colour in COLOURS.items() if outcome != "skipped" or outcome in outcomes}
    keys = [Line2D([], [], color=colour, linewidth=6, label=outcome) for outcome, colour in named.items()]
    keys.append(Line2D([], [], color=MERGED, marker="^", linestyle="none", markersize=4, label="merged"))
    figure.legend(handles=keys, loc="outside lower center", ncols=5, fontsize=axes_style.SMALL, frameon=False)
    experiment = run.header["experiment"]
    part = f"the first {len(shown)} of {len(bars)} tickets" if len(shown) < len(bars) else f"all {len(bars)} tickets"
    strategy = strategy_label(experiment["strategy"])
    axes_style.add_title(figure, f"{experiment['name']}: {strategy}, client by client", part)
    return figure
