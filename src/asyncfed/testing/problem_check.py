"""Whether a problem's numbers fit together and its training depends on nothing but its arguments."""

from __future__ import annotations

import numpy as np

from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.types import Work
from asyncfed.problems.protocol import Jobs, Problem
from asyncfed.testing.step_check import check_corrections, check_steps


def check_problem(problem: Problem, seed: int = 0) -> None:
    """Refuse a problem whose numbers do not fit together or whose training depends on anything but its arguments.

    Training must be repeatable, leave the params it was given alone, and be the same to the last bit alone, in a batch
    and on several threads; the objective must be the mean of the clients' losses, and the gradient the slope of a
    client's loss wherever that loss is smooth. Corrections must shift the gradient of every step, `work.steps` must be
    the number of steps, and `steps_done` must be filled in. A problem that cannot do one of these says so by a
    `ConfigError`; then it is not checked for it.

    Args:
        problem: what is checked.
        seed: of the check's own draws.

    Raises:
        AssertionError: it says what is wrong.
    """
    _check_shapes(problem, seed)
    draws = np.random.Generator(np.random.Philox(key=purpose_key(seed, "check_problem")))
    points = [draws.normal(0.0, 0.3, problem.num_params).astype(problem.dtype) for _ in range(4)]
    _check_training(problem, points, seed)
    corrected = check_corrections(problem, points, seed)
    check_steps(problem, points, seed, corrected)
    for point in points:
        _check_losses(problem, point)
    for point in points:
        for client in {0, problem.num_clients - 1}:
            _check_gradient(problem, point, client, draws.normal(0.0, 1.0, problem.num_params))


def _check_shapes(problem: Problem, seed: int) -> None:
    counts = problem.num_examples
    assert problem.num_clients >= 1, f"there are {problem.num_clients} clients; a problem needs at least one."
    assert counts.shape == (problem.num_clients,), f"num_examples has shape {counts.shape}, one a client is needed."
    assert np.issubdtype(counts.dtype, np.integer), f"num_examples holds {counts.dtype}; it must hold whole numbers."
    assert counts.min() >= 1, f"client {int(counts.argmin())} has {counts.min()} examples; each needs at least one."
    assert problem.dtype in (np.float32, np.float64), f"dtype is {problem.dtype}; it must be float32 or float64."
    for client in (None, 0):
        first = problem.init(seed, client=client)
        _expect_params(problem, first, f"init(client={client})")
        assert np.array_equal(first, problem.init(seed, client=client)), "init gives different params for one seed."
    assert problem.fingerprint() == problem.fingerprint(), "fingerprint is not repeatable."


def _expect_params(problem: Problem, params: np.ndarray, what: str) -> None:
    shape, dtype = (problem.num_params,), problem.dtype
    assert params.shape == shape, f"{what} has shape {params.shape}; num_params says {shape}."
    assert params.dtype == dtype, f"{what} holds {params.dtype}; dtype says {dtype}."
    assert np.isfinite(params).all(), f"{what} is not finite."


def _check_training(problem: Problem, points: list[np.ndarray], seed: int) -> None:
    works = [Work(epochs=1 + i % 2, batch_size=4 + i, learning_rate=1e-3, proximal=0.1 * i) for i in range(len(points))]
    clients = [i % problem.num_clients for i in range(len(points))]
    keys = [draw_key(purpose_key(seed, "train"), client, ticket) for ticket, client in enumerate(clients)]
    alone = []
    for start, client, work, key in zip(points, clients, works, keys, strict=True):
        before = start.copy()
        trained = problem.local_train(start, client, work, key)
        assert np.array_equal(start, before), "local_train changed the params it was given; it must copy them."
        _expect_params(problem, trained, "what local_train returns")
        again = problem.local_train(start, client, work, key)
        assert np.array_equal(trained, again), "local_train is not repeatable: draw from `key` and from nothing else."
        alone.append(trained)
    for threads in (1, 2):
        together = problem.local_train_many(Jobs(np.array(points), clients, works, keys), threads)
        same = np.array_equal(np.array(alone), together)
        assert same, f"local_train_many with {threads} threads differs from local_train one by one."


def _check_losses(problem: Problem, point: np.ndarray) -> None:
    losses = problem.client_losses(point)
    assert losses.shape == (problem.num_clients,), f"client_losses has shape {losses.shape}; one a client is needed."
    assert np.array_equal(losses, problem.client_losses(point, threads=2)), "client_losses depends on the threads."
    _expect_close(problem.client_loss(point, 0), float(losses[0]), "client_loss of client 0 and client_losses[0]")
    measured = problem.evaluate(point)
    missing = {"objective", "pooled_loss"} - measured.keys()
    assert not missing, f"evaluate leaves out {sorted(missing)}."
    _expect_close(measured["objective"], float(losses.mean()), "the objective and the mean of client_losses")


def _expect_close(one: float, other: float, what: str) -> None:
    assert abs(one - other) <= 1e-9 * max(1.0, abs(one)), f"{what} differ: {one!r} and {other!r}."


def _check_gradient(problem: Problem, point: np.ndarray, client: int, direction: np.ndarray) -> None:
    """Compare with the slope along a direction, if two step widths agree on it: else the loss has a kink there."""
    width = 1e-2 if problem.dtype == np.float32 else 1e-5
    along = direction / np.linalg.norm(direction)

    def slope(step: float) -> float:
        ahead, behind = (point + sign * step * along for sign in (1.0, -1.0))
        return (problem.client_loss(ahead, client) - problem.client_loss(behind, client)) / (2.0 * step)

    wide, narrow = slope(width), slope(width / 2)
    gradient = problem.gradient(point, client)
    assert gradient.shape == point.shape, f"gradient has shape {gradient.shape}, the params {point.shape}."
    tolerance = (1e-2 if problem.dtype == np.float32 else 1e-5) * max(1.0, float(np.linalg.norm(gradient)))
    if abs(wide - narrow) > tolerance / 4:
        return
    claimed = float(gradient @ along)
    assert abs(claimed - narrow) <= tolerance, (
        f"the gradient of client {client} says the loss changes by {claimed:.6g} per step, the loss itself says "
        f"{narrow:.6g}."
    )
