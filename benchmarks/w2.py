"""W2 on one thread: next to no training, so that nearly all the time is the simulator's own."""

from __future__ import annotations

import cProfile
import pstats
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncfed as af
from asyncfed.strategies import Strategy
from benchmarks.measure import Spent, best_in_turn
from benchmarks.outcome import Line, Outcome
from benchmarks.workloads import w2, w2_strategies

GOAL = 60_000


def measure(updates: int = 50_000, repeats: int = 5) -> Outcome:
    """Updates a second for every strategy, with its journal in memory and in a file.

    The goal is for a quiet core, so processor time decides; the rate by the wall is given beside it.
    """
    with TemporaryDirectory() as folder:
        jobs = {}
        for name, strategy in w2_strategies().items():
            experiment = w2(strategy, updates)
            problem = experiment.problem()
            for place, out in (("memory", None), ("file", Path(folder) / "w2.run")):
                jobs[f"{name}, journal in {place}"] = _job(experiment, problem, out)
        best = best_in_turn(jobs, repeats)
    lines = [_line(what, updates, spent) for what, spent in best.items()]
    rates = {what: {"wall": updates / spent.wall, "cpu": updates / spent.cpu} for what, spent in best.items()}
    missed = [line for line in lines if not line.met]
    note = ""
    if missed:
        name = missed[0].what.removeprefix("W2 ").split(",")[0]
        note = f"Where W2 {name} spends its time:\n{profile(w2_strategies()[name], updates)}"
    return Outcome(lines, {"updates_per_second": rates}, note)


def profile(strategy: Strategy, updates: int, most: int = 25) -> str:
    """The functions that take the most time of their own, under cProfile (which makes calls dearer than they are)."""
    experiment = w2(strategy, updates)
    problem = experiment.problem()
    profiler = cProfile.Profile()
    profiler.runcall(af.run, experiment, problem=problem, threads=1)
    text = StringIO()
    pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(most)
    return text.getvalue().strip()


def _job(experiment, problem, out):
    return lambda: af.run(experiment, problem=problem, threads=1, out=out, force=True)


def _line(what: str, updates: int, spent: Spent) -> Line:
    wall, cpu = updates / spent.wall, updates / spent.cpu
    measured = f"{cpu:,.0f} updates/s of CPU time ({wall:,.0f} by the wall)"
    return Line(f"W2 {what}", measured, cpu / GOAL, f">= {GOAL:,}/s", cpu >= GOAL)
