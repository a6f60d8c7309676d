"""The rivals' table: the best of all passes, how far AsyncFed is ahead, and why something is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.rivals.systems import System
from benchmarks.rivals.task import WORKLOADS

Answers = Sequence[Mapping[str, Any]]


def summary(system: System, answers: Answers) -> dict[str, Any]:
    """One system's passes in a few numbers.

    `updates_per_second` has the best rate of each workload, `all_passes` every rate, `per_cpu_second` the best by
    processor time where all work is in one process, and `errors` the reason where no pass gave a rate.
    """
    best, passes, by_cpu, errors = {}, {}, {}, {}
    for name in WORKLOADS:
        tried = [answer["workloads"][name] for answer in answers if name in answer["workloads"]]
        done = [figures for figures in tried if "error" not in figures]
        if done:
            passes[name] = [figures["updates"] / figures["seconds"] for figures in done]
            best[name] = max(passes[name])
            timed = [figures["updates"] / figures["cpu_seconds"] for figures in done if figures.get("cpu_seconds")]
            if timed:
                by_cpu[name] = max(timed)
        elif tried:
            errors[name] = tried[-1]["error"]
    versions = next((answer["versions"] for answer in answers if answer["versions"]), {})
    return {
        "name": system.name,
        "asynchronous": system.asynchronous,
        "virtual_time": system.virtual_time,
        "is_ours": system.is_ours,
        "is_limit": system.is_limit,
        "versions": versions,
        "updates_per_second": best,
        "per_cpu_second": by_cpu,
        "all_passes": passes,
        "errors": errors,
    }


def ahead(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """For each workload, the slowest of AsyncFed's rows over the fastest of the rivals': above 1 it is ahead of all."""
    ratios = {}
    for name in WORKLOADS:
        rates = [(row, row["updates_per_second"][name]) for row in rows if name in row["updates_per_second"]]
        ours = [rate for row, rate in rates if row["is_ours"]]
        theirs = [rate for row, rate in rates if not row["is_ours"] and not row["is_limit"]]
        if ours and theirs:
            ratios[name] = min(ours) / max(theirs)
    return ratios


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table, with AsyncFed's lead over each rival in brackets, and below it whatever could not be measured."""
    head = ["system", "version", *(f"{name.upper()} updates/s" for name in WORKLOADS), "asynchronous", "virtual time"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [row["name"], next(iter(row["versions"].values()), "–") if not row["is_limit"] else "–"]
        cells += [_cell(row, name, rows) for name in WORKLOADS]
        cells += ["yes" if row[property_] else "no" for property_ in ("asynchronous", "virtual_time")]
        lines.append("| " + " | ".join(cells) + " |")
    missing = [f"- {row['name']}, {name.upper()}: {why}" for row in rows for name, why in row["errors"].items()]
    if missing:
        lines += ["", "Not measured:", "", *missing]
    return "\n".join(lines) + "\n"


def _cell(row: Mapping[str, Any], name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    rate = row["updates_per_second"].get(name)
    if rate is None:
        return "–"
    text = f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"
    ours = [each["updates_per_second"].get(name) for each in rows if each["is_ours"]]
    reference = next((each for each in ours if each is not None), None)  # the first of ours: the default strategy
    if row["is_ours"] or reference is None:
        return text
    lead = reference / rate
    return f"{text} ({lead:,.0f}x)" if lead >= 10 else f"{text} ({lead:.2g}x)"
