"""How things are timed, and on what machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple


class Spent(NamedTuple):
    """Seconds on the wall and seconds of processor time (of all threads of this process)."""

    wall: float
    cpu: float


def spent_by(job: Callable[[], Any]) -> Spent:
    wall, cpu = perf_counter(), process_time()
    job()
    return Spent(perf_counter() - wall, process_time() - cpu)


def best_in_turn(jobs: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, Spent]:
    """The least time each job took when all of them are run in turn, `repeats` times over, after one run unmeasured.

    In turn, so that a change of the machine's mood touches all alike; the least, because whatever else runs on the
    machine can only add. The least wall and the least processor time may come from different repeats.
    """
    times: dict[str, list[Spent]] = {name: [] for name in jobs}
    for repeat in range(repeats + 1):
        for name, job in jobs.items():
            spent = spent_by(job)
            if repeat > 0:
                times[name].append(spent)
    return {name: Spent(min(t.wall for t in some), min(t.cpu for t in some)) for name, some in times.items()}


def machine() -> dict[str, Any]:
    """What a figure depends on besides the code: processor, cores, versions, and how busy the machine is now."""
    packages = ("asyncfed", "numpy", "numba", "torch")
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        "system": platform.platform(),
        **{package: _version(package) for package in packages},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
