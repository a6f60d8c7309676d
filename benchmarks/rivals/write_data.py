"""The data of W1 to W3 in files that every rival's environment can read: the samples AsyncFed's own runs train on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import asyncfed as af
from benchmarks import w3, workloads
from benchmarks.rivals.task import Task, save


def write_tasks(folder: Path) -> None:
    """w1.npz, w2.npz and w3.npz."""
    folder.mkdir(parents=True, exist_ok=True)
    overhead = workloads.w2(workloads.w2_strategies()["AFL"], updates=1)
    for task in (linear_task("w1", workloads.w1(rounds=1)), linear_task("w2", overhead), _network()):
        save(task, folder)


def linear_task(name: str, experiment: af.Experiment) -> Task:
    """Single precision, as PyTorch's users have it; half the rate, since PyTorch's MSELoss has no 1/2."""
    packed, strategy = experiment.problem().clients, experiment.strategy
    shape = (experiment.num_clients, -1)
    x, y = np.asarray(packed.x, np.float32), np.asarray(packed.y, np.float32)
    work = strategy.work
    return Task(
        name,
        x.reshape(*shape, x.shape[1]),
        y.reshape(shape),
        work.epochs,
        work.batch_size,
        work.learning_rate / 2,
        strategy.concurrency,
    )


def _network() -> Task:
    strategy = workloads.w3(1, w3.NUM_CLIENTS).strategy
    x, y = (np.stack(part) for part in zip(*w3.rows(), strict=True))
    work = strategy.work
    return Task("w3", x, y, work.epochs, work.batch_size, work.learning_rate, strategy.concurrency)
