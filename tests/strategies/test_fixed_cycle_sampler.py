"""FixedCycle: the same order in every cycle, blocks, churn; and the algorithms that take clients by turns."""

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.server import Server
from asyncfed.core.types import Report, Work
from asyncfed.strategies import FedAsync, FedAvg, FixedCycle, ShuffledCycle
from asyncfed.strategies.algorithm import algorithm_named
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.testing import check_strategy


def cohorts(strategy, num_clients, rounds, seed=0):
    """Who made each round."""
    server = Server(strategy, [1] * num_clients, seed)
    server.start()
    made = []
    for _ in range(rounds):
        made.append([dispatch.client for dispatch in server.outstanding.values()])
        for dispatch in list(server.outstanding.values()):
            server.receive(Report(dispatch.ticket, dispatch.client, 0.0, 1.0, 1))
    return made


def test_blocks_by_number():
    assert cohorts(FedAvg(cohort_size=2, sampler=FixedCycle()), 6, 4) == [[0, 1], [2, 3], [4, 5], [0, 1]]


def test_blocks_that_do_not_divide_the_clients():
    assert cohorts(FedAvg(cohort_size=2, sampler=FixedCycle()), 3, 4) == [[0, 1], [2, 0], [1, 2], [0, 1]]
    assert cohorts(FedAvg(cohort_size=3, sampler=FixedCycle()), 3, 2) == [[0, 1, 2], [0, 1, 2]]


@given(seed=st.integers(0, 1000), size=st.integers(1, 6), clients=st.integers(6, 9))
@settings(max_examples=25)
def test_an_order_shuffled_once_stays(seed, size, clients):
    turns = [*chain(*cohorts(FedAvg(cohort_size=size, sampler=FixedCycle(order="shuffled")), clients, 30, seed))]
    assert sorted(turns[:clients]) == list(range(clients))
    assert all(turns[i] == turns[i + clients] for i in range(len(turns) - clients))


def test_orders_differ_between_seeds():
    sampler = FixedCycle(order="shuffled")
    assert len({str(cohorts(FedAvg(cohort_size=6, sampler=sampler), 6, 1, seed)) for seed in range(5)}) > 1


@given(seed=st.integers(0, 1000), size=st.integers(1, 6), clients=st.integers(6, 9))
@settings(max_examples=25)
def test_random_reshuffling_takes_everybody_once_per_cycle(seed, size, clients):
    made = algorithm_named("random_reshuffling").make(size, Work(), ConstantRate())
    assert made == FedAvg(cohort_size=size, weighting="equal", sampler=ShuffledCycle())
    turns = [*chain(*cohorts(made, clients, 3 * clients, seed))]
    for cycle in range(size):
        # A cohort across two cycles may hold nobody twice, so a turn may come one cohort late.
        assert sorted(set(turns[cycle * clients : (cycle + 1) * clients + size - 1])) == list(range(clients))
    if clients % size == 0:
        assert all(sorted(turns[i : i + clients]) == list(range(clients)) for i in range(0, len(turns), clients))


def test_cyclic_participation_goes_by_number():
    made = algorithm_named("cyclic_participation").make(3, Work(), ConstantRate())
    assert cohorts(made, 6, 3) == [[0, 1, 2], [3, 4, 5], [0, 1, 2]]


def test_who_leaves_is_passed_over_and_who_joins_comes_last():
    server = Server(FedAvg(cohort_size=1, sampler=FixedCycle(order="shuffled")), [1] * 3, 4, absent=[3])
    server.start()

    def turn():
        (dispatch,) = server.outstanding.values()
        server.receive(Report(dispatch.ticket, dispatch.client, 0.0, 1.0, 1))
        return dispatch.client

    first = [turn() for _ in range(3)]
    server.join(3, 1)
    assert [turn() for _ in range(3)] == first  # its cycle had begun
    assert [turn() for _ in range(4)] == [*first, 3]
    server.leave(first[1])
    assert [turn() for _ in range(3)] == [first[0], first[2], 3]


def test_it_passes_the_check():
    check_strategy(FedAsync(concurrency=3, sampler=FixedCycle(order="shuffled")))


def test_predictions_have_a_formula_only_one_by_one():
    assert FixedCycle().draw_weights(3, 1) == (1.0, 1.0, 1.0)
    with pytest.raises(ConfigError, match="the sampler fixed_cycle gives each client one turn per cycle"):
        FixedCycle().draw_weights(3, 2)
