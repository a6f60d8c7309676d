"""One system's workloads, run once in its own process: what it answered, or why it did not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rivals.environments import ROOT
from benchmarks.rivals.systems import System
from benchmarks.rivals.task import WORKLOADS

LAST_LINES = 3


class Conditions(NamedTuple):
    """The same for every system of a pass: `threads` is what PyTorch may use, or None for its own choice."""

    data: Path
    share: float = 1.0
    workloads: tuple[str, ...] = WORKLOADS
    threads: int | None = None
    timeout: float = 900.0


def run_once(system: System, python: Path, conditions: Conditions, log: Path) -> dict[str, Any]:
    """`versions` and `workloads`, each with updates and seconds, or with the `error` that kept it from them."""
    command = [str(python), "-m", system.module, *system.arguments]
    command += ["--data", str(conditions.data.resolve()), "--share", str(conditions.share)]
    command += [part for name in conditions.workloads for part in ("--only", name)]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as errors:
        # A session of its own, so that whatever it started can be ended with it.
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env=_surroundings(conditions.threads),
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(timeout=conditions.timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return _failed(conditions.workloads, f"not done after {conditions.timeout:g} s")
    try:
        return json.loads(out)
    except json.JSONDecodeError:
        last = " ".join(log.read_text().split("\n")[-LAST_LINES - 1 :]).strip()
        return _failed(conditions.workloads, f"ended with status {process.returncode}: {last[-300:]}")


def _failed(workloads: tuple[str, ...], reason: str) -> dict[str, Any]:
    return {"versions": {}, "workloads": {name: {"error": reason} for name in workloads}}


def _surroundings(threads: int | None) -> dict[str, str]:
    found = [str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    limit = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
    return kept | limit | {"PYTHONPATH": os.pathsep.join(found)}
