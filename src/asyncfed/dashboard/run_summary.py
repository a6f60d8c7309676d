"""The head of a run's page: how far it is, how it went, what it counts, and what somebody should look at."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.dashboard.client_numbers import client_numbers
from asyncfed.dashboard.plain_numbers import as_number, as_plain
from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.warnings_of_run import find_warnings, left_out_clients
from asyncfed.experiment import plain_to_toml
from asyncfed.report.strategy_label import strategy_label

LIMITS = ("rounds", "updates", "elapsed")

MOST_LEFT_OUT = 200
"""Clients left out that are listed by name; `never` counts all."""


def make_summary(view: RunView) -> dict[str, Any]:
    """Everything about the run that is not a curve, a lane or a list of clients."""
    with view.lock:
        header, numbers = view.header, client_numbers(view)
        experiment = header["experiment"]
        reached = progress_of(view)
        return {
            "id": view.name,
            "change": view.change,
            "name": str(experiment.get("name", "")),
            "file": view.path.name,
            "state": view.state.state,
            "reason": str(header.get("reason", "")),
            "kind": view.kind,
            "clock": "virtual" if view.kind == "simulated" else "wall",
            "holder": view.state.holder,
            "strategy": str(experiment["strategy"].get("kind", "")),
            "strategy_label": strategy_label(experiment["strategy"]),
            "seed": as_plain(experiment.get("seed")),
            "num_clients": view.num_clients,
            "budget": budget_of(experiment),
            "progress": progress_share(experiment, reached, view.state.state),
            "now": as_number(view.now),
            **reached,
            "version": view.tickets.version,
            "events": view.tickets.num_events,
            "in_flight": int(numbers.in_flight.sum()),
            "waiting": int(numbers.waiting.sum()),
            "totals": _totals(view),
            "metrics": {name: as_number(values[-1]) for name, values in view.metrics().items() if len(values)},
            "warnings": find_warnings(view),
            "participation": _participation(view),
            "memory_lost": len(view.memory_lost),
            "privacy": as_plain(header.get("privacy")),
            "toml": plain_to_toml(experiment),
        }


def budget_of(experiment: dict[str, Any]) -> dict[str, Any]:
    """The limits of the run, null where there is none."""
    budget = experiment.get("budget")
    return {name: as_number(budget.get(name)) if isinstance(budget, dict) else None for name in LIMITS}


def progress_of(view: RunView) -> dict[str, Any]:
    """Rounds, merged updates and seconds of the run's clock so far."""
    merged = int(client_numbers(view).merged.sum())
    return {"rounds": int(view.rounds[-1][0]) if view.rounds else 0, "updates": merged, "elapsed": as_number(view.now)}


def progress_share(experiment: dict[str, Any], reached: dict[str, Any], state: str) -> float | None:
    """How much of its budget a run has used, from 0 to 1; 1 if it is over, None if it has no limit."""
    if state == "finished":
        return 1.0
    budget = budget_of(experiment)
    shares = [(reached[name] or 0) / limit for name, limit in budget.items() if limit]
    return min(1.0, max(shares)) if shares else None


def _totals(view: RunView) -> dict[str, Any]:
    numbers = client_numbers(view)
    counts = ("merged", "lost", "dropped", "cancelled", "skipped", "refused")
    last = {name: view.round_column(name)[-1] if view.rounds else 0 for name in ("bytes_down", "bytes_up", "energy")}
    return {
        **{name: int(getattr(numbers, name).sum()) for name in counts},
        "filtered": int(view.filtered.sum()),
        **{name: as_number(value) for name, value in last.items()},
    }


def _participation(view: RunView) -> dict[str, Any]:
    merged = client_numbers(view).merged
    squares = float((merged.astype(np.float64) ** 2).sum())
    left_out = left_out_clients(view)
    return {
        "jain": float(merged.sum()) ** 2 / (len(merged) * squares) if squares else None,
        "never": int((merged == 0).sum()),
        "least_client": int(merged.argmin()),
        "most_client": int(merged.argmax()),
        "left_out_total": len(left_out),
        "left_out": left_out[:MOST_LEFT_OUT],
    }
