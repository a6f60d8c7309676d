"""One number of clients, in a process of its own: `python -m benchmarks.one_size CLIENTS IN_FLIGHT UPDATES`."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import asyncfed as af
from asyncfed.problems.linear import Linear
from asyncfed.runs.progress import Progress
from asyncfed.runs.simulate import CHECKPOINT_SECONDS
from benchmarks.workloads import many_clients, w2_strategies

NEVER = 1e9


class Moment(NamedTuple):
    """How far a run was, and what it had cost."""

    updates: int
    cpu: float


def figures_of_size(num_clients: int, in_flight: int, updates: int) -> dict[str, Any]:
    """Seconds to build and to run, peak memory, and µs of processor time per update with and without checkpoints."""
    strategy = w2_strategies(in_flight)["AFL"]
    af.run(many_clients(strategy, 2 * in_flight, in_flight), threads=1)  # compiles, or loads what was compiled
    experiment = many_clients(strategy, num_clients, updates)
    began = perf_counter()
    problem = experiment.problem()
    built = perf_counter()
    with_checkpoints = cost_of_update(experiment, problem, CHECKPOINT_SECONDS)
    done = perf_counter()
    return {
        "num_clients": num_clients,
        "in_flight": in_flight,
        "updates": updates,
        "build_seconds": built - began,
        "run_seconds": done - built,
        "peak_gigabytes": peak_gigabytes(),
        "with_checkpoints": with_checkpoints,
        "without_checkpoints": cost_of_update(experiment, problem, NEVER),
    }


def cost_of_update(experiment: af.Experiment, problem: Linear, checkpoint_seconds: float) -> float:
    """µs per update between the first and the last look at a run: neither setting up nor sealing is in it."""
    seen: list[Moment] = []

    def look(progress: Progress) -> None:
        seen.append(Moment(progress.updates, process_time()))

    af.run(experiment, problem=problem, threads=1, watch=look, checkpoint_seconds=checkpoint_seconds)
    first, last = seen[0], seen[-1]
    return (last.cpu - first.cpu) * 1e6 / max(1, last.updates - first.updates)


def peak_gigabytes() -> float:
    """The most memory this process ever held.

    Linux counts in `ru_maxrss` also what the parent held when it started this process; VmHWM is of this program alone.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e9
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e9


if __name__ == "__main__":
    print(json.dumps(figures_of_size(*map(int, sys.argv[1:]))))
