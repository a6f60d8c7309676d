"""The report page of one or several runs, from their journals and their experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from asyncfed.analysis.client_table import MOST_ROWS, ClientTable
from asyncfed.analysis.filtered_updates import FilteredClient
from asyncfed.analysis.liar_influence import LiarInfluence
from asyncfed.analysis.plain_text import format_number
from asyncfed.analysis.protocols import ReportedRun
from asyncfed.core.errors import ConfigError
from asyncfed.privacy.certificate import PrivacyCertificate
from asyncfed.report.figures.client_figure import client_figure
from asyncfed.report.filtered_table import TITLE, filtered_rows
from asyncfed.report.page.html_page import write_page
from asyncfed.report.page.run_page_figures import run_figures
from asyncfed.report.strategy_label import strategy_label
from asyncfed.report.terminal.privacy_text import account_rows, certificate_lines
from asyncfed.report.units import format_quantity


@dataclass(frozen=True)
class RunDescription:
    """A run and what the page says about it.

    Args:
        run: the run.
        toml: its experiment, as TOML.
        heterogeneity: a sentence on how different its clients' data are.
        sha256: its digests by name.
        clients: the table of its clients, if the data are known.
        liars: how much liars had of it; None if nobody lies.
        filtered: clients whose updates were filtered, dropped or refused.
        privacy: what it promised its clients and what each has lost; None if it promised nothing.
    """

    run: ReportedRun
    toml: str
    heterogeneity: str
    sha256: Mapping[str, str]
    clients: ClientTable | None = None
    liars: LiarInfluence | None = None
    filtered: Sequence[FilteredClient] = ()
    privacy: PrivacyCertificate | None = None


def write_run_page(out: Path, described: Sequence[RunDescription], rerun: str = "") -> Path:
    """Write the page of these runs: how each ended, what it cost, figures, settings and digests."""
    if not described:
        raise ConfigError("there are no runs to report on; name at least one run's file.")
    named = dict(zip(_labels([each.run for each in described]), described, strict=True))
    runs = {label: each.run for label, each in named.items()}
    clients = {label: each.clients for label, each in named.items() if each.clients is not None}
    names = ", ".join(dict.fromkeys(str(run.header["experiment"]["name"]) for run in runs.values()))
    return write_page(
        out,
        f"A run of {names}" if len(described) == 1 else f"{len(described)} runs of {names}",
        [_verdict(label, run) for label, run in runs.items()],
        [*run_figures(runs, rerun), *([client_figure(clients, rerun)] if clients else [])],
        {
            "Versions and digests": {
                label: {"asyncfed": each.run.header.get("asyncfed", "unknown"), **each.sha256}
                for label, each in named.items()
            },
            **{f"Settings of {label} (TOML)": each.toml for label, each in named.items()},
            **{
                f"Privacy of {label}": "\n".join(certificate_lines(each.privacy))
                for label, each in named.items()
                if each.privacy is not None
            },
        },
        {"Results": [_row(label, each) for label, each in named.items()]},
        long_tables={
            **{f"{TITLE}: {label}": filtered_rows(each.filtered) for label, each in named.items() if each.filtered},
            **{
                f"What each client of {label} has lost": account_rows(each.privacy)
                for label, each in named.items()
                if each.privacy is not None
            },
            **{title: rows for label, table in clients.items() for title, rows in _client_tables(label, table).items()},
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
    objective = run.evaluations.get("objective", np.empty(0))
    is_kept = bool(len(objective)) and run.kept < len(objective) - 1
    return {
        "id": label,
        "claim": f"{label}: ran to its end",
        "statistic": f"objective of the model kept, round {int(run.evaluations['round'][run.kept])}"
        if is_kept
        else "last objective",
        "number": float(objective[run.kept]) if len(objective) else None,
        "verdict": run.verdict,
        "reason": run.reason,
        "figure": "loss" if len(objective) else "participation",
    }


def _row(label: str, described: RunDescription) -> dict[str, Any]:
    run, row = described.run, {"run": label}
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
        if last["skipped"]:
            row["skipped tickets"] = format_number(last["skipped"])
    if described.liars is not None:
        row["liars"] = described.liars.sentence
    return row | {"clients' data": described.heterogeneity}


def _client_tables(label: str, table: ClientTable) -> dict[str, list[dict[str, Any]]]:
    """The summary of a run's clients by title; and, of not too many, a row for each of them."""
    summary = [{"statistic": name, "value": value} for name, value in table.summary().items()]
    if len(table) > MOST_ROWS:
        return {f"Clients of {label}: summary": summary}
    columns = [name for name in table.shown_columns if name != "alone_accuracy"]
    rows = [
        {
            "client": f"{table['name'][i]}{' (worst tenth)' if table['worst'][i] else ''}",
            **{name: format_number(float(table[name][i])) for name in columns},
        }
        for i in range(len(table))
    ]
    return {f"Clients of {label}": rows, f"Clients of {label}: summary": summary}
