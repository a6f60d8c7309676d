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
    processor time where all work is in one process, `load_averages` how busy the machine was before each pass, and
    `errors` the reason where no pass gave a rate.
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
        "load_averages": [answer["load_average"] for answer in answers if "load_average" in answer],
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
    """The table, with AsyncFed's lead over each in brackets, the same by processor time, and what is missing."""
    head = ["system", "version", *(f"{name.upper()} updates/s" for name in WORKLOADS), "asynchronous", "virtual time"]
    lines = []
    for row in rows:
        version = "–" if row["is_limit"] else next(iter(row["versions"].values()), "–")
        kinds = ["yes" if row[kind] else "no" for kind in ("asynchronous", "virtual_time")]
        lines.append([row["name"], version, *_cells(row, "updates_per_second", rows), *kinds])
    text = _table(head, lines)
    timed = [[row["name"], *_cells(row, "per_cpu_second", rows)] for row in rows if row["per_cpu_second"]]
    if timed:
        text += "\nPer second of processor time, of all that run in one process; a busy machine disturbs it less:\n\n"
        text += _table(["system", *(name.upper() for name in WORKLOADS)], timed)
    missing = [f"- {row['name']}, {name.upper()}: {why}\n" for row in rows for name, why in row["errors"].items()]
    return text + ("\nNot measured:\n\n" + "".join(missing) if missing else "")


def _table(head: list[str], lines: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, ["---"] * len(head), *lines))


def _cells(row: Mapping[str, Any], figure: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A rate for each workload; of those that are not AsyncFed's, with what its default strategy makes of it."""
    cells = []
    for name in WORKLOADS:
        rate = row[figure].get(name)
        ours = next((each[figure][name] for each in rows if each["is_ours"] and name in each[figure]), None)
        if rate is None:
            cells.append("–")
        elif row["is_ours"] or ours is None:
            cells.append(_rounded(rate))
        else:
            lead = ours / rate
            cells.append(f"{_rounded(rate)} ({lead:,.0f}x)" if lead >= 10 else f"{_rounded(rate)} ({lead:.2g}x)")
    return cells


def _rounded(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"
