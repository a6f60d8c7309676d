"""All benchmarks in one run: `python -m benchmarks [--quick] [--only NAME]`. Figures go to runs/bench/results.json."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import (
    codecs,
    dashboard,
    kernel,
    large_live,
    limit,
    live,
    long_live,
    million,
    networks,
    population,
    robust,
    simulator,
    sparse,
    table,
    w1,
    w2,
    w3,
)
from benchmarks.measure import machine
from benchmarks.outcome import Outcome

RESULTS = Path("runs/bench/results.json")

QUICK: dict[str, dict[str, Any]] = {
    "kernel": {"repeats": 21},
    "w1": {"rounds": 100, "torch_updates": 3, "repeats": 3},
    "simulator": {"rounds": 100, "repeats": 5},
    "w2": {"updates": 10_000, "repeats": 2},
    "w3": {"updates": 500, "torch_updates": 200, "repeats": 3},
    "limit": {"w1_rounds": 400, "w2_updates": 40_000, "repeats": 3},
    "w4": {"updates": 100, "repeats": 2},
    "w5": {"updates": 10, "repeats": 1},
    "live": {"updates": 2_000, "repeats": 1},
    "large_live": {"updates": 400, "repeats": 1},
    "long_live": {"params": 1_000_000, "updates": 1_500},
    "million": {"sizes": (1_000, 1_000_000), "updates": 20_000, "repeats": 1},
    "population": {"updates": 50_000, "repeats": 1},
    "robust": {"repeats": 3},
    "codecs": {"repeats": 3},
    "sparse": {"repeats": 2},
    "dashboard": {"events": 100_000, "updates": 20_000, "repeats": 2},
    "table": {"repeats": 1},
}


BENCHMARKS: dict[str, Callable[..., Outcome]] = {
    "kernel": kernel.measure,
    "w1": w1.measure,
    "simulator": simulator.measure,
    "w2": w2.measure,
    "w3": w3.measure,
    "limit": limit.measure,
    "w4": networks.measure_w4,
    "w5": networks.measure_w5,
    "live": live.measure,
    "large_live": large_live.measure,
    "long_live": long_live.measure,
    "million": million.measure,
    "population": population.measure,
    "robust": robust.measure,
    "codecs": codecs.measure,
    "sparse": sparse.measure,
    "dashboard": dashboard.measure,
    "table": table.measure,
}


def main(arguments: list[str] | None = None, results: Path = RESULTS) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter repeats: rougher figures")
    parser.add_argument("--only", choices=BENCHMARKS, action="append", metavar="NAME", help=", ".join(BENCHMARKS))
    options = parser.parse_args(arguments)
    console, at_start = Console(), machine()
    outcomes = {}
    for name in options.only or BENCHMARKS:
        with console.status(f"{name} ..."):
            outcomes[name] = BENCHMARKS[name](**(QUICK[name] if options.quick else {}))
    at_end = [round(load, 2) for load in os.getloadavg()]
    load = f"load average {at_start['load_average'][0]} at the start, {at_end[0]} at the end"
    console.print(_table(f"{at_start['cpu']}, {at_start['cores']} cores; {load}", outcomes))
    for outcome in outcomes.values():
        if outcome.note:
            console.print(outcome.note, markup=False, highlight=False, soft_wrap=True)
    _write(results, {**at_start, "load_average_at_end": at_end, "quick": options.quick}, outcomes)
    console.print(f"Written to {results}.")


def _table(title: str, outcomes: dict[str, Outcome]) -> Table:
    table = Table("what", "measured", title=title)
    for column in ("ratio", "goal", "met"):
        table.add_column(column, justify="right", no_wrap=True)
    for outcome in outcomes.values():
        for line in outcome.lines:
            ratio = "" if line.ratio is None else f"{line.ratio:.2f}" if line.ratio < 100 else f"{line.ratio:.0f}"
            met = {True: "[green]yes", False: "[red]no", None: ""}[line.met]
            table.add_row(line.what, line.measured, ratio, line.goal, met)
        table.add_section()
    return table


def _write(results: Path, where: dict[str, Any], outcomes: dict[str, Outcome]) -> None:
    report = {
        "machine": where,
        "benchmarks": {
            name: {"lines": [line._asdict() for line in outcome.lines], "numbers": outcome.numbers}
            for name, outcome in outcomes.items()
        },
    }
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
