"""W3 through the public interface, against the same work in a plain PyTorch loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import asyncfed as af
from benchmarks.measure import Spent, best_in_turn
from benchmarks.outcome import Line, Outcome
from benchmarks.workloads import w3

GOAL_UPDATES = 2000.0
GOAL_RATIO = 5.0
PEERS = {"PyTorch loop, 1 thread": 1, "PyTorch loop, 2 threads": 2}
NUM_CLIENTS, SAMPLES_EACH, FEATURES, CLASSES = 100, 60, 784, 10


def measure(updates: int = 2000, torch_updates: int = 500, repeats: int = 5) -> Outcome:
    """Updates a second of AsyncFed, compiled and one by one in torch, against the faster of two PyTorch runs.

    On one thread the two are compared by processor time, which a busy machine disturbs less.
    """
    clients = rows()
    loop = torch_loop_of(clients)
    experiment = w3(updates, NUM_CLIENTS)
    together, alone = (af.problems.torch(perceptron, "cross_entropy", clients, together=how) for how in (True, False))
    ours = {
        "AsyncFed, 1 thread": partial(af.run, experiment, problem=together, threads=1),
        "AsyncFed, all cores": partial(af.run, experiment, problem=together),
        "AsyncFed one by one, all cores": partial(af.run, experiment, problem=alone),
    }
    best = best_in_turn(ours | {name: partial(loop, torch_updates, n) for name, n in PEERS.items()}, repeats)
    rates = {
        name: Spent(*((torch_updates if name in PEERS else updates) / seconds for seconds in spent))
        for name, spent in best.items()
    }
    peer = Spent(*(max(rates[name][place] for name in PEERS) for place in range(2)))
    lines = [Line(f"W3 {name}", _measured(rates[name])) for name in PEERS]
    for name in ours:
        ratio = rates[name].cpu / peer.cpu if "1 thread" in name else rates[name].wall / peer.wall
        goal = "" if "all cores" not in name or "one by one" in name else f">= {GOAL_RATIO:.0f}x PyTorch"
        lines.append(Line(f"W3 {name}", _measured(rates[name]), ratio, goal, ratio >= GOAL_RATIO if goal else None))
    fastest = max(rates[name].wall for name in ours)
    lines.append(
        Line("W3 fastest", f"{fastest:,.0f} updates/s", None, f">= {GOAL_UPDATES:,.0f}", fastest >= GOAL_UPDATES)
    )
    return Outcome(lines, {"updates_per_second": {name: rate._asdict() for name, rate in rates.items()}})


def rows() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    shape = (SAMPLES_EACH, FEATURES)
    return [
        (rng.normal(size=shape).astype(np.float32), rng.integers(0, CLASSES, SAMPLES_EACH)) for _ in range(NUM_CLIENTS)
    ]


def perceptron() -> Any:
    from torch import nn

    return nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES))


def torch_loop_of(clients: list[tuple[np.ndarray, np.ndarray]]) -> Callable[[int, int], Any]:
    """`loop(updates, threads)`: so many updates as one would write them in PyTorch, and answers with the model."""
    import torch

    from benchmarks import torch_loop

    samples = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in clients]
    work = w3(1, NUM_CLIENTS).strategy.work
    trainer = torch_loop.Trainer(
        FEATURES, work.epochs, work.batch_size, work.learning_rate, perceptron(), torch.nn.CrossEntropyLoss()
    )

    def loop(updates: int, threads: int) -> Any:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            return torch_loop.run(samples, trainer, updates, in_flight=10)
        finally:
            torch.set_num_threads(before)

    return loop


def _measured(rate: Spent) -> str:
    return f"{rate.wall:,.0f} updates/s ({rate.cpu:,.0f} per s of CPU time)"
