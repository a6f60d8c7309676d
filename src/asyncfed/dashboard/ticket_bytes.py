"""What a ticket of a run takes in bytes, on average: files count bytes by round, not by ticket."""

from __future__ import annotations

import numpy as np

from asyncfed.dashboard.run_view import RunView


def bytes_of_tickets(view: RunView) -> tuple[float, float]:
    """Bytes down of a ticket and up of an answer, on average over the rounds that are over."""
    return view.computed("ticket bytes", lambda: _bytes(view))


def _bytes(view: RunView) -> tuple[float, float]:
    if not view.rounds:
        return 0.0, 0.0
    until = view.round_column("elapsed")[-1]
    sent = int((view.tickets["sent"] <= until).sum())
    answered = int(((view.tickets["ended"] <= until) & np.isfinite(view.tickets["duration"])).sum())
    return view.round_column("bytes_down")[-1] / max(sent, 1), view.round_column("bytes_up")[-1] / max(answered, 1)
