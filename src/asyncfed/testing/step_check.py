"""Whether a problem adds corrections to its gradients, makes as many steps as it is asked for, and counts them."""

from __future__ import annotations

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import replace
from asyncfed.core.types import Work
from asyncfed.problems.protocol import Jobs, Problem

_RATE = 1e-3


def check_corrections(problem: Problem, points: list[np.ndarray], seed: int) -> bool:
    """With all rows in one batch, a single step ends `learning_rate * correction` before where it ends without it.

    Answers whether the problem accepts corrections; one that does not raises a `ConfigError`.
    """
    clients = [i % problem.num_clients for i in range(len(points))]
    works = [Work(batch_size=int(problem.num_examples[client]), learning_rate=_RATE) for client in clients]
    jobs = _jobs(problem, points, clients, works, seed)
    assert jobs.corrections is not None
    kept = jobs.corrections.copy()
    try:
        corrected = problem.local_train_many(jobs)
    except ConfigError:
        return False
    assert np.array_equal(jobs.corrections, kept), "local_train_many changed jobs.corrections; it must only read them."
    plain = problem.local_train_many(jobs._replace(corrections=None))
    assert not np.array_equal(plain, corrected), (
        "local_train_many ignores jobs.corrections, so strategies that send them would train as if they sent none. Add "
        "each job's row to the gradient of every step, or raise a ConfigError if it is not None."
    )
    for place, client in enumerate(clients):
        shift = corrected[place].astype(np.float64) - plain[place]
        wanted = -_RATE * jobs.corrections[place]
        size = max(1.0, float(np.abs(plain[place]).max()), float(np.abs(wanted).max()))
        # What is no trained parameter, such as the statistics of batch norm, has no gradient and need not be corrected.
        free = (problem.gradient(points[place], client) == 0.0) & (shift == 0.0)
        wrong = ~free & (np.abs(shift - wanted) > 64 * np.finfo(problem.dtype).eps * size)
        if wrong.any():
            first = int(wrong.argmax())
            raise AssertionError(
                f"in one step at rate {_RATE}, the correction {jobs.corrections[place, first]:.6g} of param {first} "
                f"moved it by {shift[first]:.6g}; p <- p - rate * (gradient + correction) moves it by "
                f"{wanted[first]:.6g}."
            )
    _check_alone_is_together(problem, jobs, corrected, "with corrections")
    return True


def check_steps(problem: Problem, points: list[np.ndarray], seed: int, corrected: bool) -> None:
    """Steps of two epochs end where two epochs do, one fewer elsewhere; all are counted, on any number of threads.

    If they may be, steps are `corrected`: then each of them moves the params, even where the loss is flat.
    """
    clients = [i % problem.num_clients for i in range(len(points))]
    epochs = [Work(epochs=2, batch_size=4 + i, learning_rate=_RATE, decay=0.5) for i in range(len(points))]
    jobs = _jobs(problem, points, clients, epochs, seed)
    jobs = jobs if corrected else jobs._replace(corrections=None)
    whole = _train_and_count(problem, jobs)
    sizes = [int(problem.num_examples[client]) for client in clients]
    counts = [work.count_steps(size) for work, size in zip(epochs, sizes, strict=True)]
    in_steps = [replace(work, epochs=1, steps=count) for work, count in zip(epochs, counts, strict=True)]
    try:
        counted = _train_and_count(problem, jobs._replace(works=in_steps))
    except ConfigError:
        return
    assert np.array_equal(counted, whole), (
        "work.steps is ignored, or not what it says: as many steps as two epochs have do not end where two epochs do. "
        "Make exactly work.steps mini-batch steps, whatever work.epochs is, or raise a ConfigError if it is set."
    )
    shorter = [replace(work, steps=count - 1) for work, count in zip(in_steps, counts, strict=True)]
    cut = _train_and_count(problem, jobs._replace(works=shorter))
    for place, count in enumerate(counts):
        assert not corrected or not np.array_equal(cut[place], whole[place]), (
            f"with work.steps = {count - 1}, client {clients[place]} ends where it does after {count}; the last epoch "
            "has to be cut short."
        )
    _check_alone_is_together(problem, jobs._replace(works=shorter), cut, "with work.steps")


def _train_and_count(problem: Problem, jobs: Jobs) -> np.ndarray:
    """The trained params, once the steps that were counted are those asked for."""
    sizes = [int(problem.num_examples[client]) for client in jobs.clients]
    asked = [work.count_steps(size) for work, size in zip(jobs.works, sizes, strict=True)]
    for threads in (1, 2):
        done = np.full(len(asked), -1, np.int64)
        trained = problem.local_train_many(jobs._replace(steps_done=done), threads)
        assert not (done == -1).all(), (
            "local_train_many ignores jobs.steps_done. If it is not None, fill it with the number of mini-batch steps "
            "that each job made: jobs.steps_done[i] = ..."
        )
        assert done.tolist() == asked, (
            f"with {threads} threads, steps_done says {done.tolist()}, but {asked} steps were asked for, without "
            "patience that could end them early."
        )
    return trained


def _check_alone_is_together(problem: Problem, jobs: Jobs, together: np.ndarray, how: str) -> None:
    for place in range(len(jobs.clients)):
        alone = problem.local_train_many(jobs.part(place, place + 1))[0]
        assert np.array_equal(alone, together[place]), f"{how}, a job trains otherwise alone than among others."
    same = np.array_equal(problem.local_train_many(jobs, 2), together)
    assert same, f"{how}, local_train_many depends on the number of threads."


def _jobs(problem: Problem, points: list[np.ndarray], clients: list[int], works: list[Work], seed: int) -> Jobs:
    draws = np.random.Generator(np.random.Philox(key=purpose_key(seed, "check_problem corrections")))
    corrections = draws.choice([-1.0, 1.0], (len(points), problem.num_params)) * draws.uniform(50.0, 100.0)
    keys = [draw_key(purpose_key(seed, "train"), client, ticket) for ticket, client in enumerate(clients)]
    return Jobs(np.array(points), clients, works, keys, corrections=corrections.astype(problem.dtype))
