import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.rules.latest_average import LatestAverage

values = st.floats(-100, 100)
arrivals = st.lists(
    st.tuples(st.integers(0, 9), values, values, st.sampled_from([1.0, 0.5, 0.25])), min_size=1, max_size=3
)
merges = st.lists(st.tuples(arrivals, st.sets(st.integers(0, 9), max_size=2)), min_size=1, max_size=80)


class Naive:
    """The definition, computed anew each time: the mean over the clients in it of n_c times their latest model."""

    def __init__(self, origin, examples):
        self.origin, self.examples, self.here, self.latest = origin, examples, set(range(10)), {}

    def join(self, client, model):
        self.here.add(client)
        self.latest[client] = model

    def arrive(self, client, model, weight):
        before = self.latest.get(client, self.origin)
        self.latest[client] = before + weight * (model - before)

    def leave(self, client):
        self.here.discard(client)
        self.latest.pop(client, None)

    def total(self):
        return sum(self.examples[client] for client in self.here)

    def mean(self):
        parts = [self.examples[client] * self.latest.get(client, self.origin) for client in sorted(self.here)]
        return sum(parts) / self.total()


@pytest.mark.parametrize("examples", [(1,) * 10, (1, 7, 2, 30, 4, 1, 9, 3, 2, 5)], ids=["equal", "samples"])
@given(history=merges)
@settings(max_examples=40, deadline=None)
def test_it_is_the_mean_of_the_latest_models(examples, history):
    origin = np.array([3.0, -2.0])
    rule, naive = LatestAverage(), Naive(origin, examples)
    memory, params = rule.init(origin), origin
    for arrived, leavers in history:
        leavers = leavers if len(naive.here - leavers) else set()
        joined = sorted({client for client, *_ in arrived} - naive.here)  # who reports has come back
        for client in joined:
            naive.join(client, params)
        models = [np.array([a, b]) for _, a, b, _ in arrived]
        for (client, _, _, weight), model in zip(arrived, models, strict=True):
            naive.arrive(client, model, weight)
        for client in leavers:
            naive.leave(client)
        if not naive.here:
            continue
        clients = [client for client, *_ in arrived]
        shares = tuple(examples[client] for client in clients)
        settings_ = settings_for(*shares, total=naive.total(), forget=tuple(sorted(leavers)), joined=tuple(joined))
        batch = (models, [weight for *_, weight in arrived], clients, settings_)
        params, memory, _ = rule.apply(memory, params, *batch)
        assert params == pytest.approx(naive.mean(), abs=1e-10, rel=1e-12)
    assert origin.tolist() == [3.0, -2.0]


def settings_for(*shares, total, forget=(), joined=()):
    settings = (("shares", shares), ("total", total), ("forget", forget))
    return (*settings, ("joined", joined)) if joined else settings


def test_rounding_does_not_build_up():
    rule, draws = LatestAverage(), np.random.default_rng(0)
    memory, params = rule.init(np.zeros(3)), np.zeros(3)
    latest = np.zeros((5, 3))
    for step in range(5000):
        client, model = step % 5, draws.normal(size=3) * 10.0 ** draws.integers(-3, 9)
        latest[client] = model
        params, memory, _ = rule.apply(memory, params, [model], [1.0], [client], settings_for(1, total=5))
    for client in range(5):  # huge models have come and gone; small ones must come out clean once the sum is recomputed
        latest[client] = draws.normal(size=3)
    for step in range(500):
        client = step % 5
        batch = ([latest[client]], [1.0], [client], settings_for(1, total=5))
        params, memory, _ = rule.apply(memory, params, *batch)
    assert params == pytest.approx(latest.mean(axis=0), abs=1e-12)


def test_payloads_are_neither_kept_nor_changed():
    rule = LatestAverage()
    memory, model = rule.init(np.zeros(1)), np.array([4.0])
    params, memory, _ = rule.apply(memory, np.zeros(1), [model], [1.0], [0], settings_for(1, total=2))
    assert model.tolist() == [4.0]
    model[0] = 100.0
    again, _, _ = rule.apply(memory, params, [np.array([2.0])], [1.0], [1], settings_for(1, total=2))
    assert again.tolist() == [3.0]  # (4 + 2)/2
    assert params.tolist() == [2.0]  # who holds an older version keeps it


def test_when_nobody_is_left_the_model_stays():
    rule = LatestAverage()
    memory = rule.init(np.zeros(1))
    batch = ([np.array([4.0])], [1.0], [0], settings_for(1, total=0, forget=(0,)))
    params, _, _ = rule.apply(memory, np.array([7.0]), *batch)
    assert params.tolist() == [7.0]


@pytest.mark.parametrize(("joined", "arrives_at"), [((0,), 2.5), ((), 2.0)], ids=["now", "earlier versions"])
def test_the_slot_of_who_comes_back_begins_at_the_model_of_the_moment(joined, arrives_at):
    """In files of earlier versions, whose merges do not say who joined, it began at the origin."""
    rule = LatestAverage()
    memory = rule.init(np.zeros(1))
    params, memory, _ = rule.apply(memory, np.zeros(1), [np.array([8.0])], [1.0], [0], settings_for(1, total=2))
    batch = ([np.array([2.0])], [1.0], [1], settings_for(1, total=1, forget=(0, 5)))  # 5 never reported
    params, memory, _ = rule.apply(memory, params, *batch)
    assert params.tolist() == [2.0]
    batch = ([np.array([4.0])], [0.5], [0], settings_for(1, total=2, joined=joined))  # half of the way, not from 8
    params, memory, _ = rule.apply(memory, params, *batch)
    assert params.tolist() == [arrives_at]  # (3 + 2)/2, or (2 + 2)/2


def test_a_client_may_join_when_all_slots_are_taken():
    """As after every restart, when there are as many slots as clients that have reported."""
    rule, x = LatestAverage(), np.zeros(2)
    x, memory, _ = rule.apply(rule.init(x), x, [np.ones(2)], [1.0], [0], settings_for(1, total=2))
    memory = rule.load(rule.dump(memory))
    x, memory, _ = rule.apply(memory, x, [np.full(2, 3.0)], [1.0], [1], settings_for(1, total=2, joined=(1,)))
    assert x.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_models_type_is_kept(dtype):
    rule = LatestAverage()
    memory, params = rule.init(np.zeros(2, dtype)), np.zeros(2, dtype)
    for step in range(100):
        model = np.full(2, step, dtype)
        weight = 0.5 if step % 3 else 1.0
        params, memory, _ = rule.apply(memory, params, *([model], [weight], [step % 4], settings_for(7, total=28)))
    assert params.dtype == dtype
    assert all(array.dtype == dtype for key, array in rule.dump(memory).items() if key in ("slots", "total", "origin"))


def test_a_client_whose_samples_changed_counts_by_the_new_ones_at_once():
    rule = LatestAverage()
    memory, model = rule.init(np.zeros(1)), np.array([8.0])
    params, memory, _ = rule.apply(memory, np.zeros(1), *([model], [1.0], [0], settings_for(1, total=4)))
    assert params.tolist() == [2.0]  # 1/4 of 8
    params, memory, _ = rule.apply(memory, params, *([model], [1.0], [0], settings_for(3, total=4)))
    assert params.tolist() == [6.0]  # 3/4 of 8, though the model did not move
