"""W1 through the public interface, against the same work in a plain PyTorch loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import asyncfed as af
from asyncfed.problems.protocol import PackedData
from benchmarks.measure import Spent, best_in_turn
from benchmarks.outcome import Line, Outcome
from benchmarks.workloads import w1

GOAL = 200.0
PEERS = {"PyTorch loop, 1 thread": 1, "PyTorch loop, 2 threads": 2}


def measure(rounds: int = 400, torch_updates: int = 10, repeats: int = 9) -> Outcome:
    """Updates a second of AsyncFed (on one thread, and on all cores) against the faster of two PyTorch runs.

    So many updates are done in each that they take about as long: the shorter job would more often find the machine
    quiet.
    """
    experiment = w1(rounds)
    problem = experiment.problem()
    loop = torch_loop_of(experiment, problem.clients)
    updates = experiment.strategy.concurrency * rounds
    ours = {
        "AsyncFed, 1 thread": partial(af.run, experiment, problem=problem, threads=1),
        "AsyncFed, all cores": partial(af.run, experiment, problem=problem),
    }
    best = best_in_turn(ours | {name: partial(loop, torch_updates, n) for name, n in PEERS.items()}, repeats)
    rates = {
        name: Spent(*((torch_updates if name in PEERS else updates) / seconds for seconds in spent))
        for name, spent in best.items()
    }
    peer = max(rates[name].wall for name in PEERS)
    lines = [Line(f"W1 {name}", _measured(rates[name])) for name in PEERS]
    for name in ours:
        ratio = rates[name].wall / peer
        lines.append(Line(f"W1 {name}", _measured(rates[name]), ratio, f">= {GOAL:.0f}x PyTorch", ratio >= GOAL))
    return Outcome(lines, {"updates_per_second": {name: rate._asdict() for name, rate in rates.items()}})


def torch_loop_of(experiment: af.Experiment, clients: PackedData) -> Callable[[int, int], list[np.ndarray]]:
    """`loop(updates, threads)`: so many updates of this experiment in PyTorch; answers with the server's model."""
    import torch

    from benchmarks import torch_loop

    strategy, work = experiment.strategy, experiment.strategy.work
    x, y = (torch.from_numpy(np.array(part, np.float32)) for part in (clients.x, clients.y))
    cuts = zip(clients.offsets[:-1].tolist(), clients.offsets[1:].tolist(), strict=True)
    samples = [(x[first:last], y[first:last, None]) for first, last in cuts]
    # MSELoss has no 1/2, the experiment's loss has: half the rate makes the same steps.
    trainer = torch_loop.Trainer(x.shape[1], work.epochs, work.batch_size, work.learning_rate / 2)

    def loop(updates: int, threads: int) -> list[np.ndarray]:
        torch.set_num_threads(threads)
        return [part.numpy() for part in torch_loop.run(samples, trainer, updates, strategy.concurrency)]

    return loop


def _measured(rate: Spent) -> str:
    digits = 0 if rate.wall > 1000 else 1
    return f"{rate.wall:,.{digits}f} updates/s ({rate.cpu:,.{digits}f} per s of CPU time)"
