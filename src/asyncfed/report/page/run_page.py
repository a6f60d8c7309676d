"""The report page of one or several runs, each told by its journal and by what its experiment says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asyncfed.analysis.client_table import MOST_ROWS, ClientTable
from asyncfed.analysis.plain_text import format_number
from asyncfed.analysis.protocols import ReportedRun
from asyncfed.core.errors import ConfigError
from asyncfed.report.figures.client_figure import client_figure
from asyncfed.report.page.html_page import write_page
from asyncfed.report.page.run_page_figures import run_figures
from asyncfed.report.strategy_label import strategy_label
from asyncfed.report.units import format_quantity


@dataclass(frozen=True)
class RunDescription:
    """A run, its experiment as TOML, a sentence on how different its clients' data are, its digests and its clients."""

    run: ReportedRun
    toml: str
    heterogeneity: str
    sha256: Mapping[str, str]
    clients: ClientTable | None = None


def write_run_page(out: Path, told: Sequence[RunDescription], rerun: str = "") -> Path:
    """Write the page of these runs: how each ended, what it cost, figures, settings and digests."""
    if not told:
        raise ConfigError("there are no runs to report on; name at least one run's file.")
    named = dict(zip(_labels([each.run for each in told]), told, strict=True))
    runs = {label: each.run for label, each in named.items()}
    served = {label: each.clients for label, each in named.items() if each.clients is not None}
    names = ", ".join(dict.fromkeys(str(run.header["experiment"]["name"]) for run in runs.values()))
    return write_page(
        out,
        f"A run of {names}" if len(told) == 1 else f"{len(told)} runs of {names}",
        [_verdict(label, run) for label, run in runs.items()],
        [*run_figures(runs, rerun), *([client_figure(served, rerun)] if served else [])],
        {
            "Versions and digests": {
                label: {"asyncfed": each.run.header.get("asyncfed", "unknown"), **each.sha256}
                for label, each in named.items()
            },
            **{f"Settings of {label} (TOML)": each.toml for label, each in named.items()},
        },
        {
            "What the runs came to": [_row(label, each) for label, each in named.items()],
            **{f"How {label} serves its clients": _client_rows(table) for label, table in served.items()},
        },
    )


def _labels(runs: Sequence[ReportedRun]) -> list[str]:
    """A name for each run that says what it is; equal ones are numbered."""
    labels: list[str] = []
    for run in runs:
        experiment = run.header["experiment"]
        label = f"{experiment['name']}, {strategy_label(experiment['strategy'])}, seed {experiment['seed']}"
        again = sum(other == label or other.startswith(f"{label} #") for other in labels)
        labels.append(f"{label} #{again + 1}" if again else label)
    return labels


def _verdict(label: str, run: ReportedRun) -> dict[str, Any]:
    objective = run.evaluations["objective"]
    return {
        "id": label,
        "claim": f"{label}: ran to its end",
        "statistic": "last objective",
        "number": float(objective[-1]) if len(objective) else None,
        "verdict": run.verdict,
        "reason": run.reason,
        "figure": "loss",
    }


def _row(label: str, told: RunDescription) -> dict[str, Any]:
    run, row = told.run, {"run": label}
    if len(run.evaluations["elapsed"]):
        row["virtual time"] = format_quantity("elapsed", float(run.evaluations["elapsed"][-1]))
    if len(run.rounds["round"]):
        last = {name: float(values[-1]) for name, values in run.rounds.items()}
        row |= {
            "rounds": format_number(last["round"]),
            "merged updates": format_number(last["updates"]),
            "sent": format_quantity("bytes", last["bytes_down"] + last["bytes_up"]),
            "energy": format_quantity("energy", last["energy"]),
            "mean staleness": format_number(float(run.rounds["staleness_mean"].mean())),
            "Jain's index": format_number(last["jain_index"]),
        }
    return row | {"clients' data": told.heterogeneity}


def _client_rows(table: ClientTable) -> list[dict[str, Any]]:
    """How evenly clients are served; and, of not too many, a row each."""
    rows: list[dict[str, Any]] = [{"client": name, "loss": value} for name, value in table.summary().items()]
    if len(table) > MOST_ROWS:
        return rows
    shown = ("rows", "merges", "weight", "loss", "alone", "gain", *(("accuracy",) if table.has_accuracy else ()))
    clients = [
        {
            "client": f"{table['name'][i]}{' (worst tenth)' if table['worst'][i] else ''}",
            **{name: format_number(float(table[name][i])) for name in shown},
        }
        for i in range(len(table))
    ]
    return clients + rows
