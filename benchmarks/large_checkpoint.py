"""A checkpoint of 1.5 GB and more, killed while it is written, and resumed: `python -m benchmarks.large_checkpoint`.

15 tickets are in flight, each from another version of a model of 25 million float32 parameters, of which next to
nothing is trained. A process runs until a checkpoint holds them all and, in the middle of an array of the next one,
kills itself with SIGKILL. Another resumes the run to its end, a third verifies the file. It takes some 10 GB of disk.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncfed as af
from asyncfed.runs.progress import Progress
from asyncfed.store.journal import Journal
from benchmarks.large_problem import LargeProblem

IN_FLIGHT = 15


def measure(params: int = 25_000_000, updates: int = 24) -> dict[str, Any]:
    """Run, kill, resume and verify, each in a process of its own.

    Returns:
        `bytes` of the checkpoint that was left, `models` in it, `file_bytes` of the finished run, and of each process
        `seconds` and, unless it was killed, `memory_bytes`.

    Raises:
        RuntimeError: a process did not end as it should, or left more than the run's file.
    """
    seen: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.sqlite"
        seen["run"] = _in_process("run", path, params, updates, expected=-signal.SIGKILL)
        journal = Journal.open(path)
        names = journal.columns("checkpoint_arrays")["name"]
        seen |= {"bytes": sum(journal.columns("arrays")["bytes"]), "models": names.count("models")}
        journal.close()
        seen["resume"] = _in_process("resume", path, params, updates)
        if os.listdir(folder) != [path.name]:
            raise RuntimeError(f"a run that is over is one file, but these are left: {os.listdir(folder)}")
        seen["file_bytes"] = path.stat().st_size
        seen["verify"] = _in_process("verify", path, params, updates)
    return seen


def _in_process(what: str, path: Path, params: int, updates: int, expected: int = 0) -> dict[str, float]:
    began = time.monotonic()
    command = [sys.executable, "-m", "benchmarks.large_checkpoint", what, str(path), str(params), str(updates)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != expected:
        raise RuntimeError(f"the process that was to {what} ended with {done.returncode}, not {expected}")
    return {"seconds": time.monotonic() - began, **json.loads(done.stdout or "{}")}


def _experiment(updates: int) -> af.Experiment:
    work = af.Work(epochs=1, batch_size=1, learning_rate=0.5)
    strategy = af.strategies.FedAsync(concurrency=IN_FLIGHT, work=work)
    delays = af.delays.Delays(compute=af.delays.Uniform(low=1.0, high=1.1))
    experiment = af.presets.regression(num_clients=IN_FLIGHT, delays=delays)
    budget, evaluation = af.Budget(updates=updates), af.Evaluation(every=0)
    return af.replace(experiment, strategy=strategy, budget=budget, evaluation=evaluation)


def _run(path: Path, problem: LargeProblem, updates: int) -> None:
    """Save after every update; once there were enough, die in the middle of an array of the next checkpoint."""
    write: Callable[..., int] = os.pwrite

    def write_half_and_die(file: int, data: Any, place: int) -> int:
        write(file, data[: len(data) // 2], place)
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    def watch(now: Progress) -> None:
        if now.updates > IN_FLIGHT + 1:
            os.pwrite = write_half_and_die

    af.run(_experiment(updates), problem=problem, out=path, watch=watch, checkpoint_seconds=0.0)


def main(arguments: list[str]) -> None:
    """Measure all, or do what one of its processes does."""
    if not arguments:
        for name, value in measure().items():
            print(name, value)
        return
    what, path, problem, updates = (
        arguments[0],
        Path(arguments[1]),
        LargeProblem(int(arguments[2]), IN_FLIGHT),
        int(arguments[3]),
    )
    if what == "run":
        _run(path, problem, updates)
    elif what == "resume":
        if not af.resume(path, problem=problem, checkpoint_seconds=60.0).finished:
            raise RuntimeError("the run was not finished")
    else:
        verification = af.verify(path, problem=problem)
        if not verification.ok:
            raise RuntimeError(str(verification.lines))
    print(json.dumps({"memory_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


if __name__ == "__main__":
    main(sys.argv[1:])
