"""From a thousand clients to a million: memory, and what an update costs when nearly everybody is idle.

Each size runs in a process of its own, `python -m benchmarks.million CLIENTS IN_FLIGHT UPDATES`, so that its peak
memory is its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from time import process_time
from typing import Any

import asyncfed as af
from asyncfed.running import Progress
from benchmarks.measure import spent_by
from benchmarks.outcome import Line, Outcome
from benchmarks.probes import Probe
from benchmarks.workloads import crowd, w2_strategies

GOAL_GB = 4.0
GOAL_GROWTH = 2.0
SIZES = (1_000, 10_000, 100_000, 1_000_000)
ROOT = Path(__file__).parent.parent


def measure(
    sizes: tuple[int, ...] = SIZES, in_flight: int = 500, largest_in_flight: int = 1000, updates: int = 200_000
) -> Outcome:
    """Every size with the same number in flight, then the largest again with more."""
    results = [_in_own_process(size, in_flight, updates) for size in sizes]
    growth = _growth(results[0], results[-1])
    lines = [_line(result) for result in results]
    lines.append(_largest(_in_own_process(sizes[-1], largest_in_flight, updates), results))
    what = f"cost of an update, {sizes[-1]:,} clients / {sizes[0]:,}"
    parts = f"simulator {growth['simulator']:.2f}x, kernel {growth['kernel']:.2f}x"
    lines.append(Line(what, parts, growth["total"], f"<= {GOAL_GROWTH}x", growth["total"] <= GOAL_GROWTH))
    return Outcome(lines, {"sizes": results, "growth": growth})
