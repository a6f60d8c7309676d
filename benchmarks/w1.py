"""W1 through the public interface, against the same work in a plain PyTorch loop."""

from __future__ import annotations

import numpy as np

import asyncfed as af
from benchmarks.measure import best_in_turn, spent_by
from benchmarks.outcome import Line, Outcome
from benchmarks.workloads import w1

GOAL = 200.0


def measure(rounds: int = 400, torch_updates: int = 20, repeats: int = 7) -> Outcome:
    """Updates a second of AsyncFed (on one thread, and on all cores) and of PyTorch, by the least wall time of each."""
    experiment = w1(rounds)
    problem = experiment.problem()
    updates = experiment.strategy.concurrency * rounds
    loop, torch_threads = _torch_loop(experiment, problem.clients)
    jobs = {
        "AsyncFed, 1 thread": lambda: af.run(experiment, problem=problem, threads=1),
        "AsyncFed, all cores": lambda: af.run(experiment, problem=problem),
        "PyTorch": lambda: loop(torch_updates),
    }
    best = best_in_turn(jobs, repeats)
    rates = {name: (torch_updates if name == "PyTorch" else updates) / spent.wall for name, spent in best.items()}
    peer = rates["PyTorch"]
    lines = [Line(f"W1 PyTorch loop, {torch_threads} thread(s)", f"{peer:,.1f} updates/s")]
    for name in ("AsyncFed, 1 thread", "AsyncFed, all cores"):
        ratio = rates[name] / peer
        lines.append(Line(f"W1 {name}", f"{rates[name]:,.0f} updates/s", ratio, f">= {GOAL:.0f}x PyTorch", ratio >= GOAL))
    return Outcome(lines, {"updates_per_second": rates, "torch_threads": torch_threads})


def _torch_loop(experiment, clients):
    """A function that does so many updates in PyTorch, and the number of threads (1 or 2) at which it is faster."""
    import torch

    from benchmarks import torch_loop

    work = experiment.strategy.work
    x, y = (torch.from_numpy(np.array(part, np.float32)) for part in (clients.x, clients.y))
    cuts = list(zip(clients.offsets[:-1].tolist(), clients.offsets[1:].tolist(), strict=True))
    samples = [(x[a:b], y[a:b, None]) for a, b in cuts]
    # MSELoss has no 1/2, the experiment's loss has: half the rate makes the same steps.
    trainer = torch_loop.Trainer(x.shape[1], work.epochs, work.batch_size, work.learning_rate / 2)

    def loop(updates: int):
        return torch_loop.run(samples, trainer, updates, experiment.strategy.concurrency)

    def seconds_with(threads: int) -> float:
        torch.set_num_threads(threads)
        return min(spent_by(lambda: loop(2)).wall for _ in range(3))

    threads = min((1, 2), key=seconds_with)
    torch.set_num_threads(threads)
    return loop, threads
