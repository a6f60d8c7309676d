"""Changing the weights of a merge: what is lost goes where it belongs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.pool import ClientPool
from asyncfed.core.types import Combine, Merge
from asyncfed.strategies import BoundedStaleness, FedCompass, ParticipationWeighted, Ringmaster
from asyncfed.strategies.wrapping import BusyView, PoolWithout, ViewWithout, scale_weights
from asyncfed.testing import check_strategy


def test_other_tickets_are_left_alone():
    merge = Merge((1, 2), (0.25, 0.25), 0.5, "model")
    assert scale_weights(merge, {3: 0.5}) is merge


@given(st.floats(0.0, 3.0), st.floats(0.01, 1.0))
def test_a_mixed_model_stays_a_mean(factor, weight):
    scaled = scale_weights(Merge((1,), (weight,), 1.0 - weight, "model"), {1: factor})
    assert scaled.keep + sum(scaled.weights) == pytest.approx(1.0)
    assert 0.0 <= scaled.weights[0] <= 1.0 if weight < 1.0 else True


@given(st.lists(st.floats(0.1, 3.0), min_size=1, max_size=5))
def test_a_mean_of_models_stays_one(factors):
    tickets = tuple(range(len(factors)))
    merge = Merge(tickets, (1.0 / len(factors),) * len(factors), 0.0, "model", ends_round=True)
    scaled = scale_weights(merge, dict(zip(tickets, factors, strict=True)))
    assert sum(scaled.weights) == pytest.approx(1.0)
    assert scaled.keep == 0.0
    assert scaled.ends_round


def test_deltas_and_named_rules_are_only_scaled():
    assert scale_weights(Merge((1, 2), (0.5, 0.5)), {2: 0.5}).weights == (0.5, 0.25)
    rule = Combine("latest_average", ())
    assert scale_weights(Merge((1,), (1.0,), 0.0, "model", rule), {1: 0.5}).weights == (0.5,)


def test_a_mean_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="all 1 updates of a merge have weight 0"):
        scale_weights(Merge((1,), (1.0,), 0.0, "model"), {1: 0.0})


def test_a_busy_view_shows_more_tickets_and_is_else_the_same():
    class View:
        in_flight = 2
        version = 7

    assert BusyView(View(), 3).in_flight == 5
    assert BusyView(View(), 3).version == 7
    assert BusyView(View(), None).in_flight > 10**6


@pytest.mark.parametrize(
    "wrapped",
    [
        ParticipationWeighted(strategy=FedCompass(min_steps=2, max_steps=10)),
        BoundedStaleness(strategy=FedCompass(min_steps=2, max_steps=10), max_staleness=2),
        BoundedStaleness(strategy=FedCompass(min_steps=2, max_steps=10), max_staleness=1, when_stale="damp"),
        BoundedStaleness(strategy=Ringmaster(concurrency=3), max_staleness=2),
    ],
    ids=lambda strategy: type(strategy).__name__,
)
def test_strategies_with_timers_and_cancels_can_be_wrapped(wrapped):
    check_strategy(wrapped)


@given(members=st.lists(st.integers(0, 9), unique=True, max_size=8), hidden=st.integers(0, 9))
def test_a_pool_without_a_client_holds_all_others_once(members, hidden):
    pool = PoolWithout(ClientPool(members), hidden)
    assert sorted(pool) == sorted(set(members) - {hidden})
    assert len(pool) == len(set(members) - {hidden})
    assert hidden not in pool
    assert all(client in pool for client in pool)
    with pytest.raises(IndexError):
        pool[len(pool)]


def test_a_view_without_a_client_is_else_the_same():
    class View:
        clients, idle, version = ClientPool([0, 1, 2]), ClientPool([1, 2]), 7

    view = ViewWithout(View(), 1)
    assert (sorted(view.clients), sorted(view.idle), view.version) == ([0, 2], [2], 7)
