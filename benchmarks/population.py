"""A population of a hundred million: memory, what an update costs, and what a checkpoint costs, against a thousand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from time import process_time
from typing import Any

import asyncfed as af
from asyncfed.core.record import UNSET
from asyncfed.core.types import Budget
from asyncfed.runs.header import new_header
from asyncfed.runs.simulate import CHECKPOINT_SECONDS
from asyncfed.sim.simulation import Simulation
from asyncfed.store.journal import Journal
from benchmarks.one_size import NEVER, cost_of_update, peak_gigabytes
from benchmarks.outcome import Line, Outcome
from benchmarks.workloads import SHORT_WORK, UNWATCHED

GOAL_GIGABYTES = 4.0
GOAL_GROWTH = 1.25
FEW, SOME, MANY = 1_000, 100_000, 100_000_000
HEARD_FROM = 900
NEVER_ENDS = 10**12
ROOT = Path(__file__).parent.parent


def measure(
    few: int = FEW, many: int = MANY, in_flight: int = 1_000, updates: int = 400_000, repeats: int = 3
) -> Outcome:
    """Both sizes in turn, `repeats` times over, each in a process of its own; half the thousand is in flight in both.

    Checkpoints are compared when as many clients were heard from, and with so many that hardly one is asked twice: of
    a thousand, no more than a thousand can have moved in the order of idle clients.
    """
    half = min(in_flight, few) // 2
    rounds = [[_in_own_process(size, half, updates) for size in (few, many)] for _ in range(repeats)]
    small, large = ({name: min(each[name] for each in same) for name in same[0]} for same in zip(*rounds, strict=True))
    full = _in_own_process(many, in_flight, updates)
    memory = max(full["gigabytes"], *(each[1]["gigabytes"] for each in rounds))
    lines = [
        Line(f"{many:,} clients, {in_flight:,} in flight",
             f"{memory:.2f} GB, {full['without_checkpoints']:.1f} µs/update",
             memory / GOAL_GIGABYTES, f"< {GOAL_GIGABYTES:g} GB", memory < GOAL_GIGABYTES),
        *(_growth(name.replace("_", " "), small[name], large[name], few, many, "µs/update")
          for name in ("without_checkpoints", "with_checkpoints")),
        _growth(f"a checkpoint, {HEARD_FROM:,} heard from", small["checkpoint"], large["checkpoint"], SOME, many, "ms"),
    ]  # fmt: skip
    return Outcome(lines, {"few": small, "many": large, "in_flight": full})


def _growth(what: str, small: float, large: float, few: int, many: int, unit: str) -> Line:
    growth = large / small
    measured = f"{small:.2f} and {large:.2f} {unit}, processor time"
    return Line(f"{what}, {many:,} / {few:,} clients", measured, growth, f"<= {GOAL_GROWTH}x", growth <= GOAL_GROWTH)


def figures_of_size(num_clients: int, in_flight: int, updates: int) -> dict[str, Any]:
    """Peak memory, µs of processor time per update with and without checkpoints, and ms of one checkpoint."""
    af.run(described(2 * in_flight, in_flight, 4 * in_flight), threads=1)  # compiles, or loads what was compiled
    experiment = described(num_clients, in_flight, updates)
    problem = experiment.problem()
    return {
        "without_checkpoints": cost_of_update(experiment, problem, NEVER),
        "with_checkpoints": cost_of_update(experiment, problem, CHECKPOINT_SECONDS),
        "checkpoint": cost_of_checkpoint(max(num_clients, SOME), in_flight),
        "gigabytes": peak_gigabytes(),
    }


def described(num_clients: int, in_flight: int, updates: int) -> af.Experiment:
    """FedBuff among phones that are always present: three classes of devices, log-normal times, some tickets lost."""
    devices = tuple(af.replace(each, bandwidth_down=UNSET, bandwidth_up=UNSET) for each in af.delays.phones().devices)
    return af.Experiment(
        name="population",
        num_clients=num_clients,
        data=af.data.Population(),
        strategy=af.strategies.FedBuff(concurrency=in_flight, buffer_size=max(1, in_flight // 10), work=SHORT_WORK),
        delays=af.replace(af.delays.phones(), devices=devices, availability=None),
        budget=Budget(updates=updates),
        evaluation=UNWATCHED,
    )


def cost_of_checkpoint(num_clients: int, in_flight: int, commits: int = 20) -> float:
    """ms of processor time to make and write a checkpoint, when `HEARD_FROM` clients were merged."""
    experiment = described(num_clients, in_flight, NEVER_ENDS)
    problem = experiment.problem()
    journal = Journal.create(None, new_header(experiment, problem))
    simulation = Simulation(problem, experiment.bind_delays(num_clients), experiment.plan(1), journal)
    while len(simulation.checkpoint()[0]["ledger"]["clients"]) < HEARD_FROM:
        simulation.advance(100)
    journal.commit(*simulation.checkpoint())
    began = process_time()
    for _ in range(commits):
        journal.commit(*simulation.checkpoint())
    return (process_time() - began) * 1e3 / commits


def _in_own_process(*arguments: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.population", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


if __name__ == "__main__":
    print(json.dumps(figures_of_size(*map(int, sys.argv[1:]))))
