"""What the link of one site shows of a run: its state and curves, and no other client's numbers, counts or names."""

from __future__ import annotations

from typing import Any

from asyncfed.dashboard.client_numbers import client_numbers
from asyncfed.dashboard.plain_numbers import as_number
from asyncfed.dashboard.run_summary import budget_of, progress_of, progress_share
from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.warnings_of_run import find_warnings, left_out_clients
from asyncfed.report.strategy_label import strategy_label

SHARED_AXES = ("round", "elapsed")
"""Axes of a curve that count no client's work."""

SHARED_METRICS = ("objective", "pooled_loss", "distance", "loss", "accuracy")
"""Metrics that are about all clients or about none: these, and those of test and validation rows."""


def summary_for_site(view: RunView, client: int) -> dict[str, Any]:
    """The summary that a site may see: what only sums of other clients would say is null."""
    with view.lock:
        experiment, numbers = view.header["experiment"], client_numbers(view)
        reached = progress_of(view)
        totals = {
            name: int(getattr(numbers, name)[client])
            for name in ("merged", "lost", "dropped", "cancelled", "skipped", "refused")
        }
        left_out = [row for row in left_out_clients(view) if row["client"] == client]
        return {
            "id": view.name,
            "change": view.change,
            "name": str(experiment.get("name", "")),
            "file": view.path.name,
            "state": view.state.state,
            "reason": None,
            "kind": view.kind,
            "clock": "virtual" if view.kind == "simulated" else "wall",
            "holder": None,
            "strategy": str(experiment["strategy"].get("kind", "")),
            "strategy_label": strategy_label(experiment["strategy"]),
            "seed": None,
            "num_clients": None,
            "budget": {**budget_of(experiment), "updates": None},
            "progress": progress_share({"budget": _without_updates(experiment)}, reached, view.state.state),
            "now": as_number(view.now),
            "rounds": reached["rounds"],
            "updates": totals["merged"],
            "elapsed": reached["elapsed"],
            "version": None,
            "events": None,
            "in_flight": int(numbers.in_flight[client]),
            "waiting": int(numbers.waiting[client]),
            "totals": {**totals, "filtered": int(view.filtered[client]), "bytes_down": None, "bytes_up": None,
                       "energy": as_number(numbers.energy[client])},
            "metrics": {name: as_number(values[-1]) for name, values in view.metrics().items()
                        if len(values) and is_shared_metric(name)},
            "warnings": [warning for warning in find_warnings(view) if warning["client"] == client],
            "participation": {"jain": None, "never": None, "least_client": None, "most_client": None,
                              "left_out_total": len(left_out), "left_out": left_out},
            "memory_lost": int((view.tickets["client"][view.memory_lost] == client).sum()),
            "privacy": None,
            "toml": None,
        }  # fmt: skip


def curves_for_site(curves: dict[str, Any]) -> dict[str, Any]:
    """The run's own curves against rounds and time; the sums of all clients' bytes and joules are left out."""
    empty = [None] * len(curves["round"])
    axes = {name: curves[name] if name in SHARED_AXES else empty for name in curves if name != "metrics"}
    shared = {name: values for name, values in curves["metrics"].items() if is_shared_metric(name)}
    return {**axes, "metrics": shared}


def card_for_site(card: dict[str, Any]) -> dict[str, Any]:
    """A run in a list, for one of its sites."""
    hidden = dict.fromkeys(("holder", "updates", "num_clients", "reason"))
    return {**card, **hidden, "warnings": 0}


def is_shared_metric(name: str) -> bool:
    """Whether a metric says nothing about single clients."""
    return name in SHARED_METRICS or name.startswith(("test_", "validation_"))


def _without_updates(experiment: dict[str, Any]) -> dict[str, Any]:
    budget = experiment.get("budget")
    return {**budget, "updates": None} if isinstance(budget, dict) else {}
