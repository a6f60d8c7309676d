"""How stale merged updates were: counts by number of versions."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.dashboard.plain_numbers import as_number
from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.ticket_table import MERGED

MOST_VALUES = 200
"""Bars of a histogram; of more distinct values, neighbours share a bar."""


def make_staleness(view: RunView, client: int | None = None) -> dict[str, Any]:
    """The histogram of all merged updates, or of one client's. A value stands for all up to the next one."""
    with view.lock:
        table = view.tickets
        chosen = table["outcome"] == MERGED
        if client is not None:
            chosen = chosen & (table["client"] == client)
        staleness = np.maximum(table["staleness"][chosen], 0)
        limit = view.header["experiment"]["strategy"].get("max_staleness")
    most = int(staleness.max(initial=0))
    width = most // MOST_VALUES + 1
    counts = np.bincount(staleness // width) if len(staleness) else np.zeros(1, np.int64)
    return {
        "values": (np.arange(len(counts)) * width).tolist(),
        "counts": counts.tolist(),
        "mean": as_number(staleness.mean()) if len(staleness) else None,
        "max": most if len(staleness) else None,
        "limit": as_number(limit) if isinstance(limit, int | float) else None,
    }
