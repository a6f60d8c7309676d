"""A commit before against the working tree, in one run: `python -m benchmarks.before_after COMMIT_OR_FOLDER`.

Machines differ from each other and from hour to hour, so a figure alone proves nothing. Here each workload runs in turn
with the code of both, in processes of their own with the same interpreter, and the least processor time of each is
compared: a ratio of 1.0 is as fast as before, above 1.0 faster. Live runs are compared by the wall.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parent.parent
LEAST = 0.97

PRELUDE = """
import json, sys, time
import asyncfed as af
from asyncfed.strategies import AFL, FedAsync, FedAvg, FedBuff
from asyncfed import Budget, Evaluation, Work, replace
WORK = Work(epochs=1, batch_size=32, learning_rate=0.001)
UNWATCHED = Evaluation(every=0, distance=False)

def w2(strategy, updates, clients=1000, **how):
    return af.Experiment(num_clients=clients, data=af.data.PaperRegression(num_samples=20 * clients), strategy=strategy,
        delays=af.delays.published_laptop(), budget=Budget(updates=updates), evaluation=UNWATCHED, **how)

def kernel(features, dtype):
    import numpy as np
    from asyncfed.kernels.sgd import LocalSgd
    from asyncfed.kernels.tasks import Tasks
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2000, features)).astype(dtype), rng.normal(size=2000).astype(dtype)
    model = LocalSgd(x, y, np.arange(0, 2001, 200), 0, 0.0, True, True)
    work = np.tile([500.0 / features, 32, 0.01 / features, 0.5, 0.0], (10, 1))
    tasks = Tasks(np.arange(10), np.arange(10).astype(np.uint64), work)
    starts, spent = np.zeros((10, features + 1), dtype), []
    for _ in range(200):
        began = time.process_time()
        model.train(starts, tasks)
        spent.append(time.process_time() - began)
    print(json.dumps(min(spent)))

def least(experiment, times):
    problem = experiment.problem()
    af.run(replace(experiment, budget=Budget(updates=2000)), problem=problem, threads=1)
    spent = []
    for _ in range(times):
        began = time.process_time()
        af.run(experiment, problem=problem, threads=1)
        spent.append(time.process_time() - began)
    print(json.dumps(min(spent)))
"""

WORKLOADS = {
    "kernel d = 10, float64": "kernel(10, 'float64')",
    "kernel d = 10, float32": "kernel(10, 'float32')",
    "kernel d = 500, float64": "kernel(500, 'float64')",
    "W1": "least(replace(af.presets.regression(rounds=400), split=af.data.IID(), evaluation=UNWATCHED), 5)",
    "W2 AFL": "least(w2(AFL(concurrency=100, work=WORK), 30000), 4)",
    "W2 AFL delta_mean": "least(w2(AFL(concurrency=100, aggregate='delta_mean', work=WORK), 30000), 4)",
    "W2 FedAsync": "least(w2(FedAsync(concurrency=100, work=WORK), 30000), 4)",
    "W2 FedBuff": "least(w2(FedBuff(concurrency=100, buffer_size=10, work=WORK), 30000), 4)",
    "W2 FedAvg": "least(w2(FedAvg(cohort_size=100, work=WORK), 30000), 4)",
    "a million clients": (
        "least(w2(AFL(concurrency=1000, work=WORK), 100000, 1000000, dtype='float32', split=af.data.InOrder()), 2)"
    ),
}

LIVE = """
import tempfile
from pathlib import Path

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        strategy = AFL(concurrency=8, aggregate="mixing", work=WORK, schedule=af.ConstantRate())
        experiment = af.Experiment(num_clients=8, data=af.data.PaperRegression(num_samples=256), strategy=strategy,
            budget=Budget(updates=6000), evaluation=Evaluation(every=0))
        print(json.dumps(float(af.run_live(experiment, out=Path(folder) / "l.sqlite").evaluations["elapsed"][-1])))
"""

START = {
    "import asyncfed": ["-c", "import asyncfed"],
    "asyncfed --help": ["-c", "import sys; sys.argv = ['asyncfed', '--help']; from asyncfed.cli{} import main; main()"],
}
"""CPU of a whole process, less that of an interpreter that does nothing; ratios are after / before here."""


@contextmanager
def checkout(what: str) -> Iterator[Path]:
    """The folder, or a commit of this repository in a worktree that is removed afterwards."""
    if Path(what).is_dir():
        yield Path(what).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "before"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", place, what], cwd=ROOT, check=True)
        try:
            yield place
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", place], cwd=ROOT, check=True)


def run_code(tree: Path, code: str) -> float:
    """What the code printed, run with the package of this tree."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "workload.py"
        script.write_text(PRELUDE + code)
        done = subprocess.run(
            [sys.executable, str(script)],
            env=_environment(tree),
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
    return float(json.loads(done.stdout.strip().splitlines()[-1]))


def cpu_of(tree: Path, arguments: list[str]) -> float:
    """User and system seconds of a process with the package of this tree."""
    before = os.times()
    subprocess.run([sys.executable, *arguments], env=_environment(tree), check=True, stdout=subprocess.DEVNULL, cwd="/")
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def _environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree / "src")}


def _help_of(tree: Path, arguments: list[str]) -> list[str]:
    module = ".app" if (tree / "src/asyncfed/cli/app.py").exists() else ""
    return [argument.replace("cli{}", f"cli{module}") for argument in arguments]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.before_after", description=__doc__)
    parser.add_argument("before", help="a commit, or a folder with another checkout")
    parser.add_argument("--repeats", type=int, default=3, help="how often each workload runs with each code")
    parser.add_argument("--only", action="append", help="a workload by name; may be repeated")
    options = parser.parse_args()
    console, table = Console(), Table("workload", "before", "after", "ratio", title="least of all repeats, in turn")
    names = [*WORKLOADS, "live", *START]
    with checkout(options.before) as before:
        for name in options.only or names:
            times: dict[Path, list[float]] = {before: [], ROOT: []}
            for _ in range(options.repeats * (3 if name in START else 1)):
                for tree, spent in times.items():
                    if name in START:
                        spent.append(cpu_of(tree, _help_of(tree, START[name])))
                    else:
                        spent.append(run_code(tree, LIVE if name == "live" else WORKLOADS[name]))
            old, new = min(times[before]), min(times[ROOT])
            ratio = f"{new / old:.2f} of before" if name in START else f"{old / new:.3f}"
            console.print(f"{name}: {old:.4g} s before, {new:.4g} s after: {ratio}", highlight=False)
            table.add_row(name, f"{old:.4g} s", f"{new:.4g} s", ratio)
    console.print(table)


if __name__ == "__main__":
    main()
