"""ShuffledQueue: everybody once in every n tickets, busy or not; who left is passed over."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.pool import ClientPool
from asyncfed.core.random import Stream, purpose_key
from asyncfed.strategies import FedAsync, ShuffledQueue
from asyncfed.testing import check_strategy


def view_of(clients, seed=0):
    return SimpleNamespace(clients=ClientPool(clients), idle=ClientPool(()), rng=Stream(purpose_key(seed, "sampling")))


@given(n=st.integers(1, 8), draws=st.lists(st.integers(0, 5), max_size=30), seed=st.integers(0, 100))
@settings(max_examples=40)
def test_each_client_once_in_every_n_tickets(n, draws, seed):
    sampler, view, drawn = ShuffledQueue(), view_of(range(n), seed), []
    memory = sampler.start()
    for k in draws:
        chosen, memory = sampler.draw(memory, view, k)
        assert len(chosen) == k  # though nobody is idle
        drawn += chosen
    for start in range(0, len(drawn) - n + 1, n):
        assert sorted(drawn[start : start + n]) == list(range(n))


def test_the_order_is_drawn_anew():
    drawn, _ = ShuffledQueue().draw(ShuffledQueue().start(), view_of(range(6)), 60)
    assert len({tuple(drawn[start : start + 6]) for start in range(0, 60, 6)}) > 1


def test_who_left_is_passed_over_and_nobody_is_nobody():
    sampler = ShuffledQueue()
    first, memory = sampler.draw(sampler.start(), view_of(range(4)), 1)
    left = next(client for client in range(4) if client not in first)
    rest, memory = sampler.draw(memory, view_of([c for c in range(4) if c != left]), 2)
    assert sorted([*first, *rest, left]) == [0, 1, 2, 3]
    assert sampler.draw(memory, view_of([]), 3) == ([], memory)


def test_it_passes_the_check():
    check_strategy(FedAsync(concurrency=3, sampler=ShuffledQueue()))


def test_predictions_have_a_formula_only_one_by_one():
    assert ShuffledQueue().draw_weights(2, 1) == (1.0, 1.0)
    with pytest.raises(ConfigError, match="the sampler shuffled_queue gives each client one ticket per cycle"):
        ShuffledQueue().draw_weights(2, 2)
