"""W1 to W3 in AsyncFed, asynchronous and synchronous: `--strategy AFL` (its default reading) or `--strategy FedAvg`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import asyncfed as af
from asyncfed.core.record import replace
from asyncfed.strategies import FedAvg
from benchmarks import w3, workloads
from benchmarks.rivals.protocol import Clock, answer
from benchmarks.rivals.task import Task


def experiment_of(task: Task, updates: int, synchronous: bool) -> af.Experiment:
    if task.name == "w1":
        experiment = workloads.w1(rounds=task.rounds(updates))
    elif task.name == "w2":
        experiment = workloads.w2(workloads.w2_strategies()["AFL"], updates)
    else:
        experiment = workloads.w3(updates, task.num_clients)
    if not synchronous:
        return experiment
    return replace(experiment, strategy=FedAvg(cohort_size=task.in_flight, work=experiment.strategy.work))


def run(task: Task, updates: int, clock: Clock, synchronous: bool) -> Any:
    experiment, warm_up = (experiment_of(task, n, synchronous) for n in (updates, max(updates // 10, 20)))
    if task.is_network:
        problem = af.problems.torch(task.module, "cross_entropy", w3.rows())
    else:
        problem = experiment.problem()
    af.run(warm_up, problem=problem)  # kernels are compiled once
    clock.merged(0)
    result = af.run(experiment, problem=problem)
    clock.merged(updates)
    if result.final["updates"] != updates:
        raise RuntimeError(f"{result.final['updates']:,.0f} updates were merged, not {updates:,}")
    return module_with(task, np.asarray(result.params))


def module_with(task: Task, params: np.ndarray) -> Any:
    import torch

    module = task.module()
    torch.nn.utils.vector_to_parameters(torch.tensor(params, dtype=torch.float32), module.parameters())
    return module


if __name__ == "__main__":
    strategy = sys.argv.pop(sys.argv.index("--strategy") + 1)
    sys.argv.remove("--strategy")
    synchronous = {"AFL": False, "FedAvg": True}[strategy]
    answer(
        "asyncfed",
        {"w1": 20_000, "w2": 400_000, "w3": 4_000},
        lambda task, updates, clock: run(task, updates, clock, synchronous),
        others=("torch", "numpy", "numba"),
    )
