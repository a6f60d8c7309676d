"""The figure of delays: durations over time, client by client and together, and who is present when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncfed.analysis.delay_sample import DAY, HOUR, MOMENTS_A_DAY, DelaySample
from asyncfed.report.figures.figure_data import FigureData, Panel, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CLIENTS = 100
"""Of more, so many are shown, evenly from the fastest to the slowest."""

LINEAR_UP_TO = 30.0
"""An axis on which the largest value is more than so many times the smallest is logarithmic."""

MOST_POINTS = 300
"""Of a line; more cannot be told apart."""


def draw_delays(sample: DelaySample, name: str, words: str) -> Figure:
    """A Matplotlib figure of three or four panels."""
    from asyncfed.report.figures.matplotlib_figures import draw_figure

    return draw_figure(delay_figure(sample, name, words))


def delay_figure(sample: DelaySample, name: str, words: str) -> FigureData:
    """Durations over time of some clients, of each client, of all tickets; presence by hour, or memory.

    Args:
        sample: the drawn tickets.
        name: what the delays are called.
        words: what they are, in a few words.

    Returns:
        The figure's data.
    """
    tickets, clients = sample.seconds.shape
    return FigureData(
        "delays",
        f"Delays: {name}",
        f"{words[:1].upper()}{words[1:]}. {clients} clients with {tickets} tickets each, every one given out when the "
        "one before it has come back or is given up.",
        (
            _over_time(sample),
            _by_client(sample),
            _distribution(sample),
            *(_autocorrelation(sample) if sample.present is None else [_presence(sample.present)]),
        ),
    )


def _over_time(sample: DelaySample) -> Panel:
    """The fastest, the median and the slowest client, and the one that changes most."""
    order = np.argsort(sample.client_medians, kind="stable")
    places = {int(order[round(share * (len(order) - 1))]) for share in (0.0, 0.5, 1.0)}
    third = max(1, len(sample.active) // 3)
    change = np.abs(np.log(_medians(sample.active[-third:]) / _medians(sample.active[:third])))
    chosen = sorted(places | {int(np.argmax(change))}, key=lambda client: float(sample.client_medians[client]))
    until = float(sample.arrived[-1, chosen].min())
    divisor, unit = _time_unit(until)
    series = []
    for client in chosen:
        shown = np.flatnonzero((sample.arrived[:, client] <= until) & ~sample.lost[:, client])[:MOST_POINTS]
        series.append(
            Series(
                f"client {client}",
                tuple((sample.arrived[shown, client] / divisor).tolist()),
                tuple(sample.seconds[shown, client].tolist()),
                kind="line" if sample.present is None else "points",
            )
        )
    title = "Some clients' tickets over time"
    note = "The fastest, the median and the slowest, and the one that changes most; lost tickets are left out."
    return Panel(title, f"virtual time, {unit}", "seconds a ticket", tuple(series), y_log=True, note=note)


def _by_client(sample: DelaySample) -> Panel:
    order = np.argsort(sample.client_medians, kind="stable")
    if len(order) > MOST_CLIENTS:
        order = order[np.linspace(0, len(order) - 1, MOST_CLIENTS).round().astype(int)]
    low, middle, high = np.quantile(sample.active[:, order], (0.05, 0.5, 0.95), axis=0)
    series = Series(
        "median, and 5 to 95 %",
        tuple(float(place) for place in range(1, len(order) + 1)),
        tuple(middle.tolist()),
        tuple(low.tolist()),
        tuple(high.tolist()),
        kind="points",
    )
    return Panel(
        "Each client, absences left out",
        "clients, the fastest first",
        "seconds a ticket",
        (series,),
        y_log=bool(high.max() > LINEAR_UP_TO * low.min()),
        note=f"Between clients the coefficient of variation is {sample.between_clients():.3g}; within one, the slowest "
        f"hundredth of its tickets takes {sample.slowest_percent():.3g} times its median (median of clients).",
    )


def _distribution(sample: DelaySample) -> Panel:
    shares = np.linspace(0.0, 1.0, 201)
    kept = ~sample.lost
    parts = {"all tickets": sample.seconds[kept]}
    if sample.present is not None:
        parts = {"with absences": sample.seconds[kept], "without absences": sample.active[kept]}
    series = tuple(
        Series(label, tuple(np.quantile(values, shares).tolist()), tuple((100 * shares).tolist()))
        for label, values in parts.items()
    )
    note = f"{sample.lost.mean():.1%} of the tickets are lost." if sample.lost.any() else "No ticket is lost."
    title = "How many tickets take at most so long"
    return Panel(title, "seconds a ticket", "tickets, %", series, x_log=True, note=note)


def _presence(present: np.ndarray) -> Panel:
    by_hour = 100 * present.reshape(len(present), 24, MOMENTS_A_DAY // 24).mean(axis=2)
    hours = [hour + 0.5 for hour in range(24)]
    mean, low, high = by_hour.mean(axis=0), by_hour.min(axis=0), by_hour.max(axis=0)
    series = Series(
        "present", tuple(hours), tuple(mean.tolist()), tuple(low.tolist()), tuple(high.tolist()), emphasis=True
    )
    return Panel(
        "Who is present",
        "hour of the day; a run begins at 0",
        "clients, %",
        (series,),
        note=f"Mean of {len(present)} days by the hour, the band from the lowest day to the highest; "
        f"{mean.mean():.0f} % on average.",
    )


def _autocorrelation(sample: DelaySample) -> list[Panel]:
    """None where every ticket of a client takes as long as its others: what never varies has no correlation."""
    by_lag = sample.autocorrelation()
    varying = by_lag[:, ~np.isnan(by_lag[0])]
    if not varying.size:
        return []
    low, middle, high = np.quantile(varying, (0.25, 0.5, 0.75), axis=1)
    series = Series(
        "autocorrelation",
        tuple(float(lag) for lag in range(len(by_lag))),
        tuple(middle.tolist()),
        tuple(low.tolist()),
        tuple(high.tolist()),
        emphasis=True,
    )
    panel = Panel(
        "How long a client stays slow",
        "tickets later",
        "correlation of log seconds",
        (series,),
        note="Median of the clients, the band from quarter to quarter. Independent draws would have 0 from 1 on.",
    )
    return [panel]


def _medians(seconds: np.ndarray) -> np.ndarray:
    medians: np.ndarray = np.maximum(np.median(seconds, axis=0), np.finfo(float).tiny)
    return medians


def _time_unit(longest: float) -> tuple[float, str]:
    """The unit in which so many seconds are well read.

    >>> _time_unit(100.0), _time_unit(9000.0), _time_unit(1e6)
    ((1.0, 's'), (3600.0, 'hours'), (86400.0, 'days'))
    """
    if longest > 2 * DAY:
        return DAY, "days"
    return (HOUR, "hours") if longest > 2 * HOUR else (1.0, "s")
