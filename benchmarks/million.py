"""From a thousand clients to a million: memory, and what an update costs when nearly everybody is idle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.outcome import Line, Outcome

GOAL_GIGABYTES = 4.0
GOAL_GROWTH = 1.25
MODES = ("without_checkpoints", "with_checkpoints")
SIZES = (1_000, 10_000, 100_000, 1_000_000)
ROOT = Path(__file__).parent.parent


def measure(
    sizes: tuple[int, ...] = SIZES,
    in_flight: int = 500,
    largest_in_flight: int = 1000,
    updates: int = 200_000,
    repeats: int = 3,
) -> Outcome:
    """Every size with the same number in flight, then the largest with more: all in turn, `repeats` times over."""
    pairs = [*((size, in_flight) for size in sizes), (sizes[-1], largest_in_flight)]
    rounds = [[_in_own_process(size, tickets, updates) for size, tickets in pairs] for _ in range(repeats)]
    figures = [_best(same) for same in zip(*rounds, strict=True)]
    smallest, largest = figures[0], figures[len(sizes) - 1]
    lines, growths = [_size_line(each) for each in figures], {}
    for mode in MODES:
        growths[mode] = largest[mode] / smallest[mode]
        lines.append(_growth_line(mode.replace("_", " "), sizes, growths[mode]))
    return Outcome(lines, {"sizes": figures, "growth": growths})


def _best(same: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """The least time and the most memory of one size's repeats."""
    best = dict(same[0])
    for name in ("build_seconds", "run_seconds"):
        best[name] = min(figures[name] for figures in same)
    best["peak_gigabytes"] = max(figures["peak_gigabytes"] for figures in same)
    for mode in MODES:
        best[mode] = min(figures[mode] for figures in same)
    return best


def _in_own_process(*arguments: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.one_size", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _size_line(figures: dict[str, Any]) -> Line:
    cost, memory = figures["without_checkpoints"], figures["peak_gigabytes"]
    measured = (
        f"{memory:.2f} GB, {figures['updates'] / figures['run_seconds']:,.0f} updates/s by the wall, "
        f"{cost:.1f} µs/update"
    )
    what = f"{figures['num_clients']:,} clients, {figures['in_flight']:,} in flight"
    return Line(what, measured, memory / GOAL_GIGABYTES, f"< {GOAL_GIGABYTES:.0f} GB", memory < GOAL_GIGABYTES)


def _growth_line(mode: str, sizes: tuple[int, ...], growth: float) -> Line:
    what = f"cost of an update, {sizes[-1]:,} / {sizes[0]:,} clients, {mode}"
    return Line(what, "processor time", growth, f"<= {GOAL_GROWTH}x", growth <= GOAL_GROWTH)
