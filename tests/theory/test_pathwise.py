"""The bounds along a path hold for every path: random affine clients, random bases, and the worst direction."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.theory.bounds import delta_path_recursion, mixing_path_recursion
from asyncfed.theory.pathwise import LARGEST, Merged, TicketMap, along_deltas, along_latest, along_models

CLIENTS, WIDTH = 4, 3


class Affine:
    """A client whose local work is x -> A x + c about its own fixed point."""

    def __init__(self, rng, largest):
        q, _ = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))
        self.matrix = q @ np.diag(rng.uniform(-0.2, largest, WIDTH)) @ q.T
        self.centre = rng.normal(size=WIDTH)
        self.map = TicketMap(
            float(np.linalg.norm(self.matrix, 2)),
            float(np.linalg.norm(np.eye(WIDTH) - self.matrix, 2)),
            float(np.linalg.norm(self(np.zeros(WIDTH)))),
        )

    def __call__(self, x):
        return self.centre + self.matrix @ (x - self.centre)


def path(seed, largest, length, oldest):
    rng = np.random.default_rng(seed)
    clients = [Affine(rng, largest) for _ in range(CLIENTS)]
    order = rng.integers(0, CLIENTS, length)
    bases = [int(rng.integers(max(0, t - oldest), t + 1)) for t in range(length)]
    return rng, clients, order, bases


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 0.99), st.integers(0, 6), st.floats(0.05, 1.0))
def test_mixing_never_leaves_its_bound(seed, largest, oldest, weight):
    rng, clients, order, bases = path(seed, largest, 60, oldest)
    points = [rng.normal(size=WIDTH) * 5]
    for c, base in zip(order, bases, strict=True):
        points.append((1 - weight) * points[-1] + weight * clients[c](points[base]))
    merges = [[Merged(clients[c].map, base, weight)] for c, base in zip(order, bases, strict=True)]
    distances = np.linalg.norm(points, axis=1)
    bound = along_models(distances[0], [1 - weight] * 60, merges)
    assert (distances <= bound + 1e-10 * (1 + distances[0])).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 0.99), st.integers(0, 6), st.floats(0.02, 1.0))
def test_deltas_never_leave_their_bound(seed, largest, oldest, weight):
    rng, clients, order, bases = path(seed, largest, 40, oldest)
    points = [rng.normal(size=WIDTH) * 5]
    for c, base in zip(order, bases, strict=True):
        points.append(points[-1] + weight * (clients[c](points[base]) - points[base]))
    merges = [[Merged(clients[c].map, base, weight)] for c, base in zip(order, bases, strict=True)]
    distances = np.linalg.norm(points, axis=1)
    bound = along_deltas(distances[0], merges)
    assert (distances <= bound + 1e-10 * (1 + bound)).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 0.99), st.integers(0, 6), st.floats(0.2, 1.0))
def test_the_mean_of_latest_models_never_leaves_its_bound(seed, largest, oldest, weight):
    rng, clients, order, bases = path(seed, largest, 60, oldest)
    shares = rng.dirichlet(np.ones(CLIENTS))
    start = rng.normal(size=WIDTH) * 5
    slots, points = [start.copy() for _ in range(CLIENTS)], [start]
    for c, base in zip(order, bases, strict=True):
        slots[c] = (1 - weight) * slots[c] + weight * clients[c](points[base])
        points.append(shares @ np.array(slots))
    merges = [[Merged(clients[c].map, base, weight, int(c))] for c, base in zip(order, bases, strict=True)]
    distances = np.linalg.norm(points, axis=1)
    bound = along_latest(distances[0], merges, [[shares[c]] for c in order])
    assert (distances <= bound + 1e-10 * (1 + distances[0])).all()


def test_a_bound_with_a_wrong_contraction_is_caught():
    """The property tests can fail: the same paths leave a bound that takes half the true contraction."""
    left = 0
    for seed in range(20):
        rng, clients, order, bases = path(seed, 0.95, 60, 3)
        points = [rng.normal(size=WIDTH) * 5]
        for c, base in zip(order, bases, strict=True):
            points.append(0.5 * points[-1] + 0.5 * clients[c](points[base]))
        maps = [TicketMap(0.5 * m.map.contraction, m.map.lipschitz, m.map.offset) for m in clients]
        merges = [[Merged(maps[c], base, 0.5)] for c, base in zip(order, bases, strict=True)]
        distances = np.linalg.norm(points, axis=1)
        left += (distances > along_models(distances[0], [0.5] * 60, merges)).any()
    assert left > 0


def test_along_a_path_is_never_worse_than_for_any_staleness_up_to_the_largest():
    one = TicketMap(0.9, 0.15, 0.01)
    bases = [max(0, t - t % 4) for t in range(50)]
    merges = [[Merged(one, base, 0.5)] for base in bases]
    any_order = mixing_path_recursion(
        gain=0.1, fixed_point_gap=0.01, staleness=3, start_distance=2.0, num_updates=50, mixing=0.5
    )
    assert (along_models(2.0, [0.5] * 50, merges) <= any_order + 1e-12).all()
    any_order = delta_path_recursion(
        gain=0.1, stretch=0.15, fixed_point_gap=0.01, staleness=3, start_distance=2.0, num_updates=50, server_step=0.5
    )
    assert (along_deltas(2.0, merges) <= any_order + 1e-12).all()


def test_with_one_client_and_no_noise_the_bound_is_attained():
    merges = [[Merged(TicketMap(0.5, 0.5, 0.0), t, 1.0)] for t in range(10)]
    assert along_models(8.0, [0.0] * 10, merges) == pytest.approx(8.0 * 0.5 ** np.arange(11))
    assert along_deltas(8.0, merges) == pytest.approx(8.0 * 0.5 ** np.arange(11))


def test_a_bound_that_explodes_stays_a_number():
    merges = [[Merged(TicketMap(3.0, 4.0, 1.0), max(0, t - 5), 1.0)] for t in range(2000)]
    bound = along_deltas(1.0, merges)
    assert np.isfinite(bound).all()
    assert bound[-1] == LARGEST
