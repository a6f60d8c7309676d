"""W1 and W2 against the limit: a bare event loop around C vectorised by hand, in one process, one thread each."""

from __future__ import annotations

from functools import partial

import asyncfed as af
from benchmarks.measure import best_in_turn
from benchmarks.outcome import Line, Outcome
from benchmarks.rivals.limit_workloads import event_loop, prepared
from benchmarks.rivals.write_data import linear_task
from benchmarks.workloads import w1, w2, w2_strategies

GOALS = {"w1": 0.6, "w2": 1 / 3}


def measure(w1_rounds: int = 2_000, w2_updates: int = 200_000, repeats: int = 5) -> Outcome:
    """Updates per second of processor time of `af.run`, over those of the bare loop; the journal is in memory."""
    lines, ratios = [], {}
    experiments = {"w1": w1(w1_rounds), "w2": w2(w2_strategies()["AFL"], w2_updates)}
    for name, experiment in experiments.items():
        task, problem = linear_task(name, experiment), experiment.problem()
        updates = experiment.budget.updates or w1_rounds * experiment.strategy.concurrency
        library, kept = prepared(task)
        bare = partial(event_loop, library.arrive, library.start, task.num_clients, task.in_flight, updates)
        run = partial(af.run, experiment, problem=problem, threads=1)
        best = best_in_turn({"run": run, "bare": bare}, repeats)
        library.tear_down()
        del kept
        rate, limit = updates / best["run"].cpu, updates / best["bare"].cpu
        ratios[name], goal = rate / limit, GOALS[name]
        measured = f"{rate:,.0f} updates per s of CPU time, bare loop with C {limit:,.0f}"
        lines.append(
            Line(f"{name.upper()} / the limit", measured, rate / limit, f">= {goal:.2f}x", rate / limit >= goal)
        )
    return Outcome(lines, {"ratios": ratios})
