"""W4, a convolutional network, and W5, a transformer block, against the same work in a plain PyTorch loop.

Their steps are long, so what is judged is how much of the time is torch's own: the self time of its operations, which
`torch.profiler` measures, over the time of the same run on one thread, both by the clock. The rest is Python, the book
keeping of autograd, merging, events, the journal, and the profiler, most of whose time is outside the operations.
The first and the last model are evaluated, on one row for each that is trained on: about as long as two trainings of
every client in three. So the runs are long against the number of clients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import asyncfed as af
from asyncfed.strategies import AFL
from benchmarks.measure import best_in_turn
from benchmarks.outcome import Line, Outcome
from benchmarks.workloads import UNWATCHED

GOAL_SHARE = 0.8
Rows = list[tuple[np.ndarray, np.ndarray]]


class Network(NamedTuple):
    """A module, its clients' rows, and the local work: one epoch in batches."""

    name: str
    make: Callable[[], Any]
    rows: Callable[[], Rows]
    batch: int
    in_flight: int


def measure_w4(updates: int = 600, repeats: int = 5) -> Outcome:
    return measure(Network("W4", convolutional, images, 20, 10), updates, repeats)


def measure_w5(updates: int = 80, repeats: int = 3) -> Outcome:
    return measure(Network("W5", transformer, sequences, 8, 5), updates, repeats)


def measure(network: Network, updates: int, repeats: int) -> Outcome:
    """Updates a second on one thread and on all cores, against the faster of two PyTorch runs; the share of torch."""
    rows = network.rows()
    problem = af.problems.torch(network.make, "cross_entropy", rows)
    experiment = described(network, updates, len(rows))
    ours = {
        f"AsyncFed, {name}": partial(af.run, experiment, problem=problem, **how)
        for name, how in {"1 thread": {"threads": 1}, "all cores": {}}.items()
    }
    loop = loop_of(network, rows)
    fewer = max(1, updates // 4)  # they have nothing to set up
    peers = {f"PyTorch loop, {n} thread{'s' * (n > 1)}": partial(loop, fewer, n) for n in (1, 2)}
    best = best_in_turn(ours | peers, repeats)
    rates = {name: (fewer if name in peers else updates) / spent.wall for name, spent in best.items()}
    fastest = max(rates[name] for name in peers)
    lines = [Line(f"{network.name} {name}", f"{rates[name]:,.1f} updates/s") for name in peers]
    lines += [Line(f"{network.name} {name}", f"{rates[name]:,.1f} updates/s", rates[name] / fastest) for name in ours]
    share = share_of_torch(ours["AsyncFed, 1 thread"])
    lines.append(
        Line(
            f"{network.name} time in torch's operations",
            f"{share:.0%} of {problem.num_params:,} parameters' run",
            share,
            f">= {GOAL_SHARE}",
            share >= GOAL_SHARE,
        )
    )
    return Outcome(lines, {"updates_per_second": rates, "share": share})


def described(network: Network, updates: int, num_clients: int) -> af.Experiment:
    work = af.Work(epochs=1, batch_size=network.batch, learning_rate=0.01)
    return af.Experiment(
        name=network.name.lower(),
        num_clients=num_clients,
        strategy=AFL(concurrency=network.in_flight, work=work),
        delays=af.delays.published_laptop(),
        budget=af.Budget(updates=updates),
        evaluation=UNWATCHED,
    )


def share_of_torch(job: Callable[[], Any]) -> float:
    """The self time of torch's operations over the time of the run that they were measured in."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as watched:
        before = perf_counter()
        job()
        spent = perf_counter() - before
    within = sum(row.self_cpu_time_total for row in watched.key_averages() if row.key.startswith("aten::"))
    return within / 1e6 / spent


def loop_of(network: Network, rows: Rows) -> Callable[[int, int], Any]:
    """`loop(updates, threads)`: so many updates as one would write them in PyTorch."""
    import torch

    from benchmarks.torch_loop import Trainer, run

    samples = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in rows]
    trainer = Trainer(0, 1, network.batch, 0.01, network.make(), torch.nn.CrossEntropyLoss())

    def loop(updates: int, threads: int) -> Any:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            return run(samples, trainer, updates, network.in_flight)
        finally:
            torch.set_num_threads(before)

    return loop


# ---- W4 ------------------------------------------------------------------------------------------------------------


def images(num_clients: int = 50, each: int = 60) -> Rows:
    """Grey images of 8 by 8 pixels; the class is where they are bright."""
    rng, rows = np.random.default_rng(0), []
    for _ in range(num_clients):
        y = rng.integers(0, 10, each)
        x = rng.normal(size=(each, 1, 8, 8)).astype(np.float32)
        x[np.arange(each), 0, y % 8, y // 2] += 3.0
        rows.append((x, y))
    return rows


def convolutional() -> Any:
    from torch import nn

    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(256, 304), nn.ReLU(), nn.Linear(304, 10)),
    )


# ---- W5 ------------------------------------------------------------------------------------------------------------

TOKENS, LENGTH, CLASSES, WIDTH = 40, 32, 10, 288


def sequences(num_clients: int = 10, each: int = 16) -> Rows:
    """Sequences of 32 tokens; the class is the kind of token that a third of them are."""
    rng, rows = np.random.default_rng(0), []
    for _ in range(num_clients):
        y = rng.integers(0, CLASSES, each)
        x = rng.integers(0, TOKENS, (each, LENGTH))
        marked = rng.random(x.shape) < 1 / 3
        rows.append((np.where(marked, y[:, None], x), y))
    return rows


def transformer() -> Any:
    from torch import nn

    class Mean(nn.Module):
        """The mean over the sequence."""

        def forward(self, x: Any) -> Any:
            return x.mean(1)

    block = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Embedding(TOKENS, WIDTH), block, Mean(), nn.Linear(WIDTH, CLASSES))
