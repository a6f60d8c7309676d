"""Malenia SGD: a trace by hand, when it stops, that everybody counts the same, and that a run of it can be trusted."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Delays, Exponential, FunctionDelays
from asyncfed.strategies import FedAvg, Malenia
from asyncfed.strategies.malenia import harmonic_mean_exceeds

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


def test_by_hand(hand_run):
    run = hand_run(Malenia(changes_per_step=4, server_lr=0.5), num_examples=(1, 5))
    # n = 2: the harmonic mean has to exceed 2. Counts (1, 1): 1. (2, 1): 4/3. (2, 2): 2. (2, 3): 2.4.
    assert run.arrive(0, 4.0) == (0, "hold", 0.0)
    assert run.arrive(1, 1.0) == (0, "hold", 0.0)  # the mistaken stop would be here
    assert run.arrive(0, 8.0) == (0, "hold", 0.0)
    assert run.arrive(1, 2.0) == (0, "hold", 0.0)
    # (6 + (1 + 2 + 6) / 3) / 2 / 2 = 2.25; the ticket of client 0 is stopped.
    assert run.arrive(1, 6.0) == (0, "merge cancel", 2.25)
    assert run.merges[0].weights == (1 / 8, 1 / 12, 1 / 8, 1 / 12, 1 / 12)
    assert run.server.round == 1
    assert [run.start_of(client) for client in range(2)] == [2.25, 2.25]


def test_who_leaves_is_no_longer_waited_for_and_who_joins_counts(hand_run):
    run = hand_run(Malenia())
    run.arrive(0, 3.0)
    run.arrive(0, 5.0)
    run.arrive(1, 5.0)
    assert run.leave(1) == ("drop", 0.0)  # its change does not count, and client 2 is still awaited
    assert run.leave(2) == ("merge cancel", 4.0)  # client 0 is alone: 0 + (3 + 5) / 2, and 2 is above S/n = 1
    run.join(1)
    assert run.arrive(0, 5.0) == (0, "hold", 4.0)
    assert run.arrive(1, 9.0) == (0, "merge cancel", 7.0)  # 4 + (1 + 5) / 2


def test_with_few_changes_per_step_everybody_is_heard_once_at_least(tiny, events):
    times = (1.1, 0.7, 3.0)
    strategy = Malenia(changes_per_step=2, work=WORK)
    delays = FunctionDelays(lambda client, ticket, work: times[client]).bind(3, 0)
    run = af.run(tiny(clients=3, strategy=strategy, budget=Budget(rounds=5)), delays=delays)
    assert [merge.time for merge in events(run, "merge")] == [3.0, 6.0, 9.0, 12.0, 15.0]  # the slowest decides
    assert run.rounds["staleness_max"].tolist() == [0] * 5
    assert len(events(run, "report")) == 5 * (2 + 4 + 1)


def test_with_equal_speeds_it_is_fedavg_with_equal_weights(tiny):
    delays = FunctionDelays(lambda client, ticket, work: 1.0).bind(4, 0)
    runs = [
        af.run(tiny(clients=4, strategy=strategy, budget=Budget(rounds=8), init="torch"), delays=delays)
        for strategy in (
            Malenia(work=af.replace(WORK, batch_size=8)),
            FedAvg(cohort_size=4, weighting="equal", work=af.replace(WORK, batch_size=8)),
        )
    ]  # one batch has all rows, so that nothing is left to chance
    np.testing.assert_allclose(runs[0].params, runs[1].params, rtol=1e-9)


@given(counts=st.lists(st.integers(0, 12), max_size=8), changes=st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_the_stop_is_that_of_exact_arithmetic(counts, changes):
    exact = all(counts) and bool(counts)
    if exact:
        n = len(counts)
        exact = n / sum(Fraction(1, count) for count in counts) > Fraction(changes, n)
    assert harmonic_mean_exceeds(counts, changes) == exact


def test_the_mean_of_its_steps_is_the_mean_of_all_clients_whatever_their_speeds(tiny):
    """Full batches leave no noise, so one step is the mean change, however often the fast client was heard."""
    full = af.replace(WORK, batch_size=8)
    delays = FunctionDelays(lambda client, ticket, work: (0.1, 1.0, 2.0)[client]).bind(3, 0)
    experiment = tiny(clients=3, strategy=Malenia(changes_per_step=5, work=full), budget=Budget(rounds=1))
    run = af.run(experiment, delays=delays)
    problem = experiment.problem()
    x = problem.init(0)
    changes = [problem.local_train(x, client, full, 0) - x for client in range(3)]
    np.testing.assert_allclose(run.params, x + np.mean(changes, axis=0), rtol=1e-12)


def test_who_has_sent_enough_rests(hand_run):
    run = hand_run(Malenia(changes_per_step=100, most_changes=2), num_examples=(1, 1))
    run.arrive(0, 2.0)
    run.arrive(0, 4.0)
    assert [d.client for d in run.server.outstanding.values()] == [1]
    run.arrive(1, 1.0)
    assert run.arrive(1, 3.0) == (0, "merge", 2.5)  # the harmonic mean is 2, not above 50, but more will not come
    assert sorted(d.client for d in run.server.outstanding.values()) == [0, 1]


def test_refusals():
    with pytest.raises(ConfigError, match=r"strategy\.most_changes is 0; it must be at least 1 change, or none"):
        Malenia(most_changes=0)
    with pytest.raises(ConfigError, match=r"strategy\.changes_per_step is -1; a step needs at least 1 change"):
        Malenia(changes_per_step=-1)


def test_threads_interruptions_and_replay(tiny, trusted):
    strategy = Malenia(changes_per_step=5, work=WORK)
    delays = Delays(compute=Exponential(mean=1.0), dropout=0.05)
    run = trusted(tiny(clients=5, strategy=strategy, delays=delays, budget=Budget(updates=80), init="torch"))
    assert run.rounds["staleness_max"].max() == 0
