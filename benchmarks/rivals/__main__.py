"""AsyncFed, its rivals and the limit in one run: `python -m benchmarks.rivals [--passes 4] [--quick] [--only NAME]`.

Makes each rival's environment, runs all systems in turn, several times over, and keeps the least time of each workload.
Figures go to runs/bench/rivals.json, the table to rivals.md and the picture to rivals.png beside it.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.measure import machine
from benchmarks.rivals import environments, report
from benchmarks.rivals.one_run import Conditions, run_once
from benchmarks.rivals.rivals_figure import save_figure
from benchmarks.rivals.systems import SYSTEMS, System
from benchmarks.rivals.task import WORKLOADS
from benchmarks.rivals.write_data import write_tasks

RESULTS = Path("runs/bench")
QUICK = {"passes": 1, "share": 0.2}


def compare(
    systems: Sequence[System], passes: int, conditions: Conditions, logs: Path, say: Callable[[str], None]
) -> Iterator[list[dict[str, Any]]]:
    """After every pass, a row for each system with the best so far.

    In every other pass PyTorch may use one thread only, which is faster for small models.
    """
    answers: dict[str, list[dict[str, Any]]] = {system.name: [] for system in systems}
    pythons: dict[str, Path] = {}
    for system in systems:
        say(f"{system.name}: environment")
        try:
            pythons[system.name] = environments.interpreter(system)
        except environments.NotInstalled as problem:
            say(f"{system.name}: {problem}")
            failed = {name: {"error": f"cannot be installed: {problem}"} for name in conditions.workloads}
            answers[system.name].append({"versions": {}, "workloads": failed})
    for turn in range(passes):
        threads = 1 if turn % 2 == 0 else None
        for system in systems:
            if system.name in pythons:
                log = logs / f"{system.name.split(' (')[0].replace(', ', '-').replace(' ', '-')}-{turn}.log"
                load = round(os.getloadavg()[0], 2)
                answer = run_once(system, pythons[system.name], conditions._replace(threads=threads), log)
                answers[system.name].append({**answer, "load_average": load})
                say(f"{system.name}, pass {turn + 1} of {passes}: {_rates(answer)}")
        yield [report.summary(system, answers[system.name]) for system in systems]


def _rates(answer: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {figures['error'] if 'error' in figures else format(figures['updates'] / figures['seconds'], ',.1f')}"
        for name, figures in answer["workloads"].items()
    )


def main(arguments: list[str] | None = None, systems: Sequence[System] = SYSTEMS) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals", description=__doc__)
    parser.add_argument("--passes", type=int, default=4, help="how often all systems are run in turn (default 4)")
    parser.add_argument("--share", type=float, default=1.0, help="of the updates each system usually does")
    parser.add_argument("--quick", action="store_true", help="one pass, a fifth of the updates: rough figures")
    parser.add_argument("--only", action="append", metavar="NAME", help="systems whose name contains this")
    parser.add_argument("--workload", action="append", choices=WORKLOADS)
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds a system has for one pass (default 900)")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    if options.quick:
        options.passes, options.share = QUICK["passes"], QUICK["share"]
    chosen = [s for s in systems if not options.only or any(part.lower() in s.name.lower() for part in options.only)]
    if not chosen:
        parser.error(f"no system is called so; there are: {', '.join(system.name for system in systems)}")
    data = options.out / "data"
    write_tasks(data)
    conditions = Conditions(data, options.share, tuple(options.workload or WORKLOADS), timeout=options.timeout)
    console, where = Console(), {"date": f"{datetime.now(UTC):%Y-%m-%d}", **machine()}

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    for done, rows in enumerate(compare(chosen, options.passes, conditions, options.out / "logs", say), start=1):
        where |= {"passes": done, "load_average_at_end": [round(load, 2) for load in os.getloadavg()]}
        say(_write(options.out, where, rows))


def _write(out: Path, where: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """The three files; answers with the table and where it was made. Made after every pass, so that none is lost."""
    results = {"machine": where, "systems": rows, "ahead_of_the_fastest_rival": report.ahead(rows)}
    (out / "rivals.json").write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")
    table = report.markdown(rows)
    (out / "rivals.md").write_text(table)
    load = f"load average {where['load_average'][0]} at the start, {where['load_average_at_end'][0]} at the end"
    passes = f"{where['passes']} pass{'' if where['passes'] == 1 else 'es'}"
    subtitle = f"{where['date']}, {where['cpu']}, {where['cores']} cores, best of {passes}; {load}."
    save_figure(rows, subtitle, out / "rivals.png")
    return f"\n{table}\n{subtitle} Written to {out}/rivals.json, .md and .png.\n"


if __name__ == "__main__":
    main()
