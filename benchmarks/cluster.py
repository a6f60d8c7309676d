"""Trainings on a Ray cluster against `Workers` on the same cores: python -m benchmarks.cluster.

Needs the extras ray and torch. Without --address, a cluster of one node with two CPUs is started on this machine; with
it, two actors of that cluster are used. Two workloads, each in turn with the same work by two worker processes and by
one thread of this process: the digits of `examples/digits_cnn.py` as an experiment, by updates a second; and calls of
ten trainings of one step on one row, of a small and of a large model, by what a training costs more than here.
"""

from __future__ import annotations

import argparse
import os
import secrets
from functools import partial

import numpy as np

import asyncfed as af
from asyncfed.problems.protocol import Jobs, Problem
from benchmarks.measure import best_in_turn
from benchmarks.outcome import Line, Outcome

ACTORS, TOGETHER = 2, 10
SIZES = (100, 1_000_000)


def digits(updates: int) -> af.Experiment:
    """A network of 6,090 parameters, 20 clients of about 90 images, 10 in flight, 12 steps an update."""
    return af.Experiment(
        name="digits",
        num_clients=20,
        data=af.data.DigitImages(),
        dtype="float32",
        model=af.problems.Convolutional(),
        strategy=af.strategies.AFL(concurrency=10, work=af.Work(epochs=2, batch_size=16, learning_rate=0.03)),
        delays=af.delays.heavy_tailed(),
        budget=af.Budget(updates=updates),
        evaluation=af.Evaluation(every=updates, unit="update"),
    )


def measure(cluster: af.Cluster, updates: int = 400, calls: int = 30, repeats: int = 5) -> Outcome:
    """Updates a second, and what a training costs more than in this process."""
    lines, numbers = _throughput(cluster, updates, repeats)
    for size in SIZES:
        more, measured = _overhead(cluster, size, calls, repeats)
        lines += more
        numbers[f"overhead of {size:,} parameters"] = measured
    return Outcome(lines, numbers)


def _throughput(cluster: af.Cluster, updates: int, repeats: int) -> tuple[list[Line], dict[str, object]]:
    experiment = digits(updates)
    problem = experiment.problem()
    with cluster.train_for(experiment, problem, True) as there, af.Workers(problem, ACTORS) as pooled:
        jobs = {
            "one thread": partial(af.run, experiment, problem=problem, threads=1),
            f"{ACTORS} workers": partial(af.run, experiment, problem=pooled, threads=1),
            f"{ACTORS} actors": partial(af.run, experiment, problem=there, threads=1),
        }
        best = best_in_turn(jobs, repeats)
    rates = {name: updates / spent.wall for name, spent in best.items()}
    workers = rates[f"{ACTORS} workers"]
    lines = [Line(f"digits, {name}", f"{rate:,.1f} updates/s", rate / workers) for name, rate in rates.items()]
    return lines, {"updates_per_second": rates}


def _overhead(cluster: af.Cluster, size: int, calls: int, repeats: int) -> tuple[list[Line], dict[str, float]]:
    rng = np.random.default_rng(0)
    rows = af.data.Clients.from_lists([rng.normal(size=(1, size))] * TOGETHER, [np.ones(1)] * TOGETHER)
    problem = af.problems.Linear(rows)
    experiment = af.Experiment(num_clients=TOGETHER, strategy=af.strategies.AFL(concurrency=TOGETHER))
    with cluster.train_for(experiment, problem, False) as there, af.Workers(problem, ACTORS) as pooled:
        places: dict[str, Problem] = {"here": problem, f"{ACTORS} workers": pooled, f"{ACTORS} actors": there}
        best = best_in_turn({name: partial(_train, place, calls) for name, place in places.items()}, repeats)
    each = {name: spent.wall / (calls * TOGETHER) for name, spent in best.items()}
    lines = [
        Line(f"{size:,} parameters, {name}", f"{1e3 * (seconds - each['here']):.2f} ms more than here for a training")
        for name, seconds in each.items()
        if name != "here"
    ]
    return lines, each


def _train(problem: Problem, calls: int) -> None:
    """As the simulator does: new models in every call, each of which half of the trainings start from."""
    models, work = [problem.init(0)] * 2, af.Work(steps=1)
    for call in range(calls):
        models = [model + call for model in models]
        origins = [models[k % 2] for k in range(TOGETHER)]
        keys = list(range(TOGETHER))
        problem.local_train_many(
            Jobs(np.stack(origins), keys, [work] * TOGETHER, keys, overwrite=True, origins=origins)
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", help="HOST:PORT of a running cluster")
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if options.address is None:
        # Else Ray writes a token into the home folder, and later clusters of this user ask for it.
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
        import ray

        where = {"_node_ip_address": "127.0.0.2", "object_store_memory": 2**29}
        ray.init(num_cpus=ACTORS, include_dashboard=False, log_to_driver=False, **where)
    with af.Cluster(options.address or "auto", ACTORS) as cluster:
        outcome = measure(cluster, options.updates, repeats=options.repeats)
    for line in outcome.lines:
        ratio = "" if line.ratio is None else f"  {line.ratio:.2f} of {ACTORS} workers"
        print(f"{line.what:30} {line.measured}{ratio}")
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
