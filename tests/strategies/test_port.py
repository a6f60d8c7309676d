"""PORT: a trace by hand, FedAvg's weights where all are fresh, weights that sum to one, and late clients."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import Stream, purpose_key
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Cancel, Dispatch, Merge, Report, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.strategies import Port
from asyncfed.testing import check_strategy

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


def test_by_hand(ruled_hand_run):
    """S = 2, a = 1, b = 3; samples 1, 2, 3; K = 2."""
    strategy = Port(concurrency=3, buffer_size=2, staleness_bound=2)
    run = ruled_hand_run(strategy, num_examples=(1, 2, 3), start=(0.0, 0.0))
    assert run.arrive(0, [3.0, 0.0])[1] == "hold"
    # Both fresh: 1 and 2 of 3 samples.
    assert run.arrive(1, [0.0, 3.0])[1:] == ("merge", pytest.approx([1.0, 2.0], rel=1e-15))
    assert run.merges[0].weights == pytest.approx((1 / 3, 2 / 3), rel=1e-15)
    # Client 2 started from 0 and goes where the model went, one version late: 3 (1 + 3 * 2/3) = 9.
    assert run.arrive(2, [2.0, 4.0])[0]["moved_cosine"] == pytest.approx(1.0, rel=1e-15)
    # Client 1 is fresh: 2 (1 + 3) = 8.
    assert run.arrive(1, [0.0, 1.7])[1:] == ("merge", pytest.approx([1 + 9 / 17 * 2, 2 + 9 / 17 * 4 + 0.8], rel=1e-14))
    assert run.merges[1].weights == pytest.approx((9 / 17, 8 / 17), rel=1e-14)
    assert run.server.round == 2


def test_the_factor_by_hand():
    strategy = Port()  # S = 10, a = 1, b = 3
    assert strategy.factor(staleness=0, cosine=1.0) == 4.0
    assert strategy.factor(staleness=0, cosine=-1.0) == 3.0
    assert strategy.factor(staleness=10, cosine=1.0) == 2.5
    assert strategy.factor(staleness=30, cosine=0.0) == 1.25


def drive(strategy, seed, arrivals, cosine=lambda chance: 2 * chance.unit() - 1):
    """Reports in random order; yields (outputs, staleness by ticket of all tickets)."""
    server, staleness = Server(strategy, [3 * c + 1 for c in range(6)], seed), {}
    server.start()
    chance = Stream(purpose_key(seed, "order"))
    for _ in range(arrivals):
        tickets = list(server.outstanding)
        place = chance.below(min(2, len(tickets)) if chance.below(6) else len(tickets))
        dispatch = server.outstanding[tickets[-1 - place]]  # the newest mostly, so that some become very late
        staleness[dispatch.ticket] = server.version - dispatch.base_version
        metrics = {"moved_cosine": cosine(chance)}
        examples = server.num_examples(dispatch.client)
        yield server.receive(Report(dispatch.ticket, dispatch.client, 0.0, 1.0, examples, metrics)), staleness, server


@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 6),
    bound=st.integers(1, 4),
    late=st.sampled_from(["wait", "restart", "ignore"]),
)
@settings(max_examples=25)
def test_weights_sum_to_one_and_the_bound_holds(seed, size, bound, late):
    strategy = Port(concurrency=4, buffer_size=size, staleness_bound=bound, when_late=late)
    for outputs, staleness, server in drive(strategy, seed, 60):
        for merge in [output for output in outputs if isinstance(output, Merge)]:
            assert sum(merge.weights) == pytest.approx(1.0, rel=1e-12)
            assert min(merge.weights) > 0
            assert len(merge.tickets) >= size
            if late != "ignore":
                assert max(staleness[ticket] for ticket in merge.tickets) <= bound
        if late != "wait":
            assert len(server.outstanding) == 4
        assert len(server.outstanding) >= 1
        assert late == "restart" or not any(isinstance(output, Cancel) for output in outputs)


@given(seed=st.integers(0, 1000))
@settings(max_examples=10)
def test_where_all_are_fresh_it_has_the_weights_of_fedavg(seed):
    """Before the first merge all are, whoever reports and how often."""
    clients = {output.ticket: output.client for output in Server(Port(concurrency=6), [1] * 6, seed).start()}
    for outputs, _, server in drive(Port(concurrency=6, buffer_size=6), seed, 6, cosine=lambda chance: 1.0):
        clients |= {output.ticket: output.client for output in outputs if isinstance(output, Dispatch)}
        for merge in [output for output in outputs if isinstance(output, Merge)]:
            samples = [server.num_examples(clients[ticket]) for ticket in merge.tickets]
            assert merge.weights == pytest.approx([n / sum(samples) for n in samples], rel=1e-12)
            assert server.version == 1


def test_a_full_buffer_waits_for_who_is_late(ruled_hand_run):
    strategy = Port(concurrency=3, buffer_size=2, staleness_bound=1)
    run = ruled_hand_run(strategy)
    run.arrive(0, [1.0])
    assert run.arrive(1, [1.0])[1] == "merge"  # client 2 is now one version old
    run.arrive(0, [1.0])
    assert run.arrive(1, [1.0])[1] == "hold"  # a merge would leave it two versions old
    assert [d.client for d in run.server.outstanding.values()] == [2, 0]  # 0 had a ticket before the buffer was full
    assert run.arrive(0, [1.0])[1] == "hold"
    assert run.arrive(2, [1.0])[1] == "merge"
    assert len(run.merges[1].tickets) == 4
    assert len(run.server.outstanding) == 3


def test_a_lost_laggard_releases_the_buffer(ruled_hand_run):
    run = ruled_hand_run(Port(concurrency=3, buffer_size=2, staleness_bound=1))
    for client in (0, 1, 0, 1):
        run.arrive(client, [1.0])
    assert run.lose(2)[0] == "merge"
    assert len(run.server.outstanding) == 3


def test_who_is_late_begins_anew(ruled_hand_run):
    run = ruled_hand_run(Port(concurrency=3, buffer_size=2, staleness_bound=1, when_late="restart"))
    for client in (0, 1, 0):
        run.arrive(client, [1.0])
    assert run.arrive(1, [1.0])[1] == "merge cancel"
    assert run.dispatch_of(2).base_version == 2


@pytest.mark.parametrize("late", ["wait", "restart"])
def test_every_setting_passes_the_check(late):
    strategy = Port(concurrency=3, buffer_size=2, staleness_bound=1, when_late=late)
    check_strategy(strategy, metrics=["moved_cosine"])


def test_nobody_has_samples_or_all_point_the_other_way():
    server = Server(Port(concurrency=2, buffer_size=2, staleness_weight=0.0), [0, 0])
    first, second = (output for output in server.start() if isinstance(output, Dispatch))
    server.receive(Report(first.ticket, first.client, 0.0, 1.0, 5, {"moved_cosine": -1.0}))
    merge, *_ = server.receive(Report(second.ticket, second.client, 0.0, 1.0, 0, {"moved_cosine": 1.0}))
    assert merge.weights == (0.5, 0.5)


def test_threads_interruptions_and_replay(tiny, trusted):
    delays = Delays(compute=Exponential(mean=1.0), dropout=0.05)
    strategy = Port(concurrency=5, buffer_size=2, staleness_bound=2, work=WORK)
    run = trusted(tiny(clients=6, strategy=strategy, delays=delays, budget=Budget(updates=40)))
    assert run.rounds["staleness_max"].max() == 2


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"buffer_size": 0}, r"strategy\.buffer_size is 0; a buffer holds at least 1 update"),
        ({"staleness_bound": 0}, r"strategy\.staleness_bound is 0; it must be at least 1 version"),
        ({"similarity_weight": -1.0}, r"strategy\.similarity_weight is -1\.0; it must be zero or a positive number"),
        ({"similarity_weight": 0.0, "staleness_weight": 0.0}, "are both 0; set one above 0"),
    ],
)
def test_bad_settings_are_refused(how, words):
    with pytest.raises(ConfigError, match=words):
        Port(**how)
