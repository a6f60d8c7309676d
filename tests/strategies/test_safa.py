"""SAFA: traces by hand, its limit FedAvg, weights over all clients, who is picked, clients that come and go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Drop, Report, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.strategies import FedAvg, Safa
from asyncfed.strategies.safa import pick_first
from asyncfed.testing import check_strategy


def test_a_trace_by_hand(clock_run):
    """Q = 2 of 4, lag 1. Clients take 1, 2, 3 and 10 s and add 4, 8, 12 and 40; c is the cache."""
    run = clock_run(Safa(cohort_size=2, lag_tolerance=1), [1.0, 2.0, 3.0, 10.0], [4.0, 8.0, 12.0, 40.0])
    assert run.at_work() == [0, 1, 2, 3]
    # c = (4, 8, 0, 0): x = 12/4. Clients 2 and 3 are one version old, and go on.
    assert run.run(2.0).log == [(2.0, "merge", [0, 1], 3.0)]
    assert run.merges[0].weights == (0.25, 0.25)
    # Client 2, not picked before, comes first; then client 0, from 3: c = (7, 8, 12, 0). Client 3 has to begin anew.
    assert run.run(3.0).log[1:] == [(3.0, "merge", [2, 0], 6.75), (3.0, "cancel", [3], 6.75)]
    assert run.at_work() == [0, 1, 2, 3]
    # Client 1 from 3, client 0 from 6.75; c_3 = 6.75, because it was deprecated: c = (10.75, 11, 12, 6.75).
    assert run.run(4.0).log[3:] == [(4.0, "merge", [1, 0], 10.125)]
    assert run.server.version == run.server.round == 3


def test_undrafted_models_count_from_the_next_round_on(clock_run):
    """Q = 2 of 3. Client 2 is lost in the first round, so that the second waits for it."""
    run = clock_run(Safa(cohort_size=2), [1.0, 2.0, 3.0], [3.0, 6.0, 12.0]).run(0.5)
    run.lose(2)
    assert run.run(2.0).log == [(2.0, "merge", [0, 1], 3.0)]  # c = (3, 6, 0)
    # Clients 0 and 1 are there at 3 and 4 s, but were picked before: client 2 is waited for, and then picked first.
    assert run.run(5.0).log[1:] == [(5.0, "merge", [2, 0, 1], 9.0)]  # c = (6, 6, 15) in the mean; c_1 = 9 after it
    assert run.merges[1].weights == (pytest.approx(1 / 3), pytest.approx(1 / 3), 0.0)
    run.run(5.5)
    run.lose(1)
    assert run.run(8.0).log[2:] == [(8.0, "merge", [0, 2], 14.0)]  # c = (12, 9, 21): what bypassed counts now


def test_the_deadline_ends_a_round(clock_run):
    run = clock_run(Safa(cohort_size=2, deadline=1.5), [1.0, 2.0, 9.0], [3.0, 6.0, 30.0]).run(1.5)
    assert run.log == [(1.5, "merge", [0], 1.0)]
    assert run.at_work() == [0, 1, 2]
    assert run.run(3.0).log[1:] == [(2.5, "merge", [1, 0], pytest.approx(10 / 3))]  # c = (1 + 3, 6, 0)
    assert len(run.run(4.0).log) == 3  # the second round's own deadline
    slow = clock_run(Safa(cohort_size=1, deadline=1.5), [2.0], [3.0]).run(2.0)
    assert slow.log == [(2.0, "merge", [0], 3.0)]  # nobody was there at the deadline: the next to come


def test_if_everybody_is_in_time_and_picked_it_is_fedavg():
    """The same means; clients work on all their rows at once, so that it does not matter who has which ticket."""
    work = Work(epochs=2, batch_size=1000, learning_rate=0.01)
    settings = {
        "num_clients": 4,
        "data": af.data.PaperRegression(num_samples=42),
        "split": af.data.QuantitySkew(),
        "delays": Delays(compute=Exponential(mean=1.0)),
        "budget": Budget(rounds=8),
    }
    one = af.run(af.Experiment(strategy=Safa(cohort_size=4, work=work), **settings), threads=1)
    other = af.run(af.Experiment(strategy=FedAvg(cohort_size=4, work=work), **settings), threads=1)
    np.testing.assert_allclose(one.params, other.params, rtol=1e-12)


def with_plain_cache(run):
    """The run, each merge of which is compared with a cache kept by plain means: a model for every client here."""
    cache, merge_by_rule, first = {}, run._merge, run.x

    def checked(merge):
        told = dict(merge.combiner.settings)
        before, clients = run.x, [run.vectors.client_of[ticket] for ticket in merge.tickets]
        models = [run.vectors.trained[ticket].item() for ticket in merge.tickets]
        cache.update(dict.fromkeys(told["forgotten"], first))
        cache.update({client: before for client, _ in told["synchronised"]})
        cache.update(list(zip(clients, models, strict=True))[: told["picked"]])
        examples = {client: run.server.num_examples(client) for client in run.server.clients}
        weights = {client: count / sum(examples.values()) for client, count in examples.items()}
        merge_by_rule(merge)
        assert sum(weights.values()) == pytest.approx(1.0, rel=1e-12)
        assert [weights[c] for c in clients[: told["picked"]]] == pytest.approx(merge.weights[: told["picked"]])
        assert run.x == pytest.approx(sum(weights[c] * cache.get(c, first) for c in weights), rel=1e-12, abs=1e-12)
        cache.update(list(zip(clients, models, strict=True))[told["picked"] :])

    run._merge = checked
    return run


@given(
    seconds=st.lists(st.floats(0.5, 10.0), min_size=2, max_size=6),
    quota=st.integers(1, 6),
    tolerance=st.integers(0, 3),
    seed=st.integers(0, 99),
)
@settings(max_examples=10, deadline=None)
def test_weights_sum_to_one_over_all_clients(clock_run, seconds, quota, tolerance, seed):
    examples = [1 + (seed * (client + 3)) % 7 for client in range(len(seconds))]
    moves = [(-1.0) ** client * (client + seed % 5) for client in range(len(seconds))]
    strategy = Safa(cohort_size=min(quota, len(seconds)), lag_tolerance=tolerance)
    run = with_plain_cache(clock_run(strategy, seconds, moves, examples, start=1.0)).run(8.0)
    run.leave(0)
    run.run(12.0)
    run.join(0, seconds=0.7, move=3.0, num_examples=3)
    run.join(9, seconds=2.0, move=5.0, num_examples=5)
    run.run(25.0)
    assert len(run.merges) >= 2  # everybody may take 10 of the 25 s
    assert max(sum(weight > 0 for weight in merge.weights) for merge in run.merges) <= strategy.cohort_size


def test_who_has_left_is_out_of_the_mean_and_who_comes_begins_at_x(clock_run):
    run = clock_run(Safa(cohort_size=2), [1.0, 1.5, 50.0], [4.0, 8.0, 0.0]).run(1.5)
    assert run.log == [(1.5, "merge", [0, 1], 4.0)]  # c = (4, 8, 0)
    run.leave(2)
    run.leave(0)
    run.join(5, seconds=1.5, move=2.0, num_examples=1)
    # Clients 1 and 5 are here: c_1 = 4 + 8, c_5 = 4 + 2.
    assert run.run(3.0).log[1:] == [(3.0, "merge", [1, 5], 9.0)] or run.log[1:] == [(3.0, "merge", [5, 1], 9.0)]


@given(st.permutations(range(6)), st.sets(st.integers(0, 5)), st.integers(1, 6))
@settings(max_examples=20)
def test_who_was_not_picked_before_comes_first(arrived, before, quota):
    picked = pick_first(arrived, sorted(before), quota)
    assert len(picked) == quota
    left = [client for client in arrived if client not in picked]
    assert all(client in before for client in left) or not any(client in before for client in picked)
    assert pick_first(arrived, [], quota) == list(arrived[:quota])


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy",
    [Safa(cohort_size=2, lag_tolerance=1), Safa(cohort_size=4, deadline=2.0), Safa(cohort_size=1, lag_tolerance=0)],
    ids=str,
)
def test_it_passes_the_check(strategy):
    check_strategy(strategy, seed=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cohort_size": 0}, "strategy.cohort_size is 0; at least 1 client must be picked"),
        ({"lag_tolerance": -2}, "strategy.lag_tolerance is -2; it must be at least 0 versions"),
        ({"deadline": -1.0}, r"strategy\.deadline is -1\.0; it must be a positive number"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        Safa(**settings)


def test_more_than_there_are_is_refused():
    with pytest.raises(ConfigError, match=r"strategy\.cohort_size is 5, but there are only 4 clients"):
        Safa(cohort_size=5).check(4)
    with pytest.raises(ConfigError, match="lag is counted in versions of the server's model"):
        Safa(cohort_size=1, work=Work(start="own")).check(4)


def test_who_reported_left_and_came_back_in_one_round_counts_once():
    """Its first report is dropped when it leaves: a round has one report of a client, and none waits for ever."""
    server = Server(Safa(cohort_size=3), [1, 1, 1])
    first = {dispatch.client: dispatch.ticket for dispatch in server.start()}
    server.receive(Report(first[0], 0, 1.0, 1.0, 1))
    assert [type(said) for said in server.leave(0)] == [Drop]
    (again,) = server.join(0, 1)
    server.receive(Report(again.ticket, 0, 2.0, 1.0, 1))
    server.receive(Report(first[1], 1, 3.0, 3.0, 1))
    merge = server.receive(Report(first[2], 2, 4.0, 4.0, 1))[0]
    assert sorted(merge.tickets) == sorted([again.ticket, first[1], first[2]])
    assert server.waiting == {}
