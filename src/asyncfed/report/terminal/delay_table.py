"""What delays are like in a few numbers: a table in a terminal."""

from __future__ import annotations

import numpy as np
from rich.table import Table

from asyncfed.analysis.delay_sample import DelaySample
from asyncfed.analysis.plain_text import format_number


def delay_table(sample: DelaySample) -> Table:
    """A line a number; the seconds are those without absences."""
    low, middle, high = np.quantile(sample.active, (0.05, 0.5, 0.95)).tolist()
    medians = sample.client_medians
    lag_one = sample.autocorrelation()[1]
    lag_one = lag_one[~np.isnan(lag_one)]
    lines = {
        "seconds a ticket, median": format_number(middle),
        "5 to 95 % of the tickets": f"{format_number(low)} to {format_number(high)}",
        "medians of the clients": f"{format_number(medians.min())} to {format_number(medians.max())}",
        "coefficient of variation between clients": format_number(sample.between_clients()),
        "p99 / median of a client": format_number(sample.slowest_percent()),
        "correlation of its ticket and the next": format_number(float(np.median(lag_one))) if len(lag_one) else "–",
        "lost tickets": f"{sample.lost.mean():.1%}",
        "clients present": "all, always",
    }
    if sample.present is not None:
        by_hour = sample.present.mean(axis=0)
        lines["clients present"] = f"{by_hour.mean():.0%}; {by_hour.min():.0%} to {by_hour.max():.0%} by the hour"
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, text in lines.items():
        table.add_row(name, text)
    return table
