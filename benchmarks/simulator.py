"""What the simulator costs on top of the training it does: W1 against its own kernel calls, made again bare."""

from __future__ import annotations

from functools import partial

import numpy as np

import asyncfed as af
from asyncfed.kernels.losses import loss_code
from asyncfed.kernels.sgd import LocalSgd
from asyncfed.kernels.tasks import Tasks
from asyncfed.problems.protocol import Jobs
from benchmarks.measure import best_in_turn
from benchmarks.outcome import Line, Outcome
from benchmarks.probes import Call, Probe
from benchmarks.workloads import w1

GOAL = 1.25


def measure(rounds: int = 1000, repeats: int = 15) -> Outcome:
    """Processor time of `af.run` on one thread (data given) over that of the kernel, in the same calls."""
    experiment = w1(rounds)
    problem = experiment.problem()
    probe = Probe(problem)
    af.run(experiment, problem=probe, threads=1)
    data, model = problem.clients, problem.model
    kernel = LocalSgd(
        data.x, data.y, data.offsets, loss_code(model.loss), model.l2, model.penalize_bias, model.fit_bias
    )
    trainings = [(call.jobs.starts, _tasks(call.jobs)) for call in probe.calls]
    _check_same(kernel, trainings, probe.calls)

    def bare() -> None:
        for starts, tasks in trainings:
            kernel.train(starts, tasks)

    best = best_in_turn({"run": partial(af.run, experiment, problem=problem, threads=1), "kernel": bare}, repeats)
    run, alone = best["run"].cpu, best["kernel"].cpu
    trained = sum(len(call.jobs.clients) for call in probe.calls)
    per_update = {"run": run / trained * 1e6, "kernel": alone / trained * 1e6}
    measured = f"{per_update['run']:.1f} of which kernel {per_update['kernel']:.1f} µs/update"
    numbers = {"ratio": run / alone, "cpu_us_per_update": per_update, "tasks_per_call": trained / len(probe.calls)}
    line = Line("simulator on W1 / its bare kernel", measured, run / alone, f"<= {GOAL}x", run / alone <= GOAL)
    return Outcome([line], numbers)


def _tasks(jobs: Jobs) -> Tasks:
    return Tasks(
        np.array(jobs.clients, np.int64),
        np.array(jobs.keys, np.uint64),
        np.array([(w.epochs, w.batch_size, w.learning_rate, w.decay, w.proximal) for w in jobs.works], np.float64),
    )


def _check_same(kernel: LocalSgd, trainings: list[tuple[np.ndarray, Tasks]], calls: list[Call]) -> None:
    for (starts, tasks), call in zip(trainings, calls, strict=True):
        if not np.array_equal(kernel.train(starts, tasks), call.trained):
            raise AssertionError(
                "the bare kernel trained to other models than the simulation; the work is not the same"
            )
