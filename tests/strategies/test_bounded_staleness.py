"""A bound on staleness around any strategy: traces by hand, and the same decisions as AFL's own bound."""

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.server import Server
from asyncfed.core.types import Drop, Merge, Report
from asyncfed.strategies import AFL, BoundedStaleness, FedAsync, FedAvg, FedBuff, UniformAll
from asyncfed.strategies.discounts import NoDiscount
from asyncfed.testing import check_strategy

HOW = ("drop", "damp", "wait")


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("bound", [0, 2])
@pytest.mark.parametrize(
    "inner",
    [
        FedAsync(concurrency=3),
        FedBuff(concurrency=3, buffer_size=2),
        FedAvg(cohort_size=3),
        AFL(concurrency=3),
        FedAsync(concurrency=3, sampler=UniformAll()),
    ],
    ids=["fedasync", "fedbuff", "fedavg", "afl", "queue"],
)
def test_any_strategy_conforms_when_bounded(inner, bound, how):
    check_strategy(BoundedStaleness(strategy=inner, max_staleness=bound, when_stale=how))


@pytest.mark.parametrize("how", ["drop", "damp"])
def test_around_mixing_it_decides_as_the_bound_of_afl(how):
    mixing = {"concurrency": 4, "aggregate": "mixing"}
    inside = AFL(**mixing, max_staleness=1, when_stale=how)
    around = BoundedStaleness(strategy=AFL(**mixing), max_staleness=1, when_stale=how)
    assert decisions(inside) == decisions(around)


def decisions(strategy, steps=60):
    """What is decided when the newest ticket reports, but every third time the oldest does."""
    server = Server(strategy, [1] * 6)
    made = [server.start()]
    for step in range(steps):
        tickets = list(server.outstanding)
        ticket = tickets[0] if step % 3 == 2 else tickets[-1]
        made.append(server.receive(Report(ticket, server.outstanding[ticket].client, float(step), 1.0, 1)))
    return made


def test_an_update_above_the_bound_is_dropped_and_its_place_filled():
    server = Server(BoundedStaleness(strategy=FedAsync(concurrency=2), max_staleness=0), [1, 1])
    first, second = (output.ticket for output in server.start())
    assert any(isinstance(output, Merge) for output in server.receive(report(server, first)))
    dropped, _train = server.receive(report(server, second))
    assert dropped == Drop(second, "staleness 1 is above max_staleness 0")
    assert len(server.outstanding) == 2


def test_a_damped_update_counts_less_and_the_server_keeps_the_rest():
    inner = FedAsync(concurrency=2, mixing=0.8, discount=NoDiscount())
    server = Server(BoundedStaleness(strategy=inner, max_staleness=0, when_stale="damp"), [1, 1])
    first, second = (output.ticket for output in server.start())
    server.receive(report(server, first))
    merge = next(output for output in server.receive(report(server, second)) if isinstance(output, Merge))
    assert merge.weights == (0.8 * 2**-0.5,)
    assert merge.keep == 1.0 - 0.8 * 2**-0.5


def test_in_a_buffer_a_damped_update_is_damped_when_it_is_merged():
    inner = FedBuff(concurrency=3, buffer_size=2, discount=NoDiscount())
    server = Server(BoundedStaleness(strategy=inner, max_staleness=0, when_stale="damp"), [1, 1, 1])
    tickets = [output.ticket for output in server.start()]
    server.receive(report(server, tickets[0]))
    server.receive(report(server, tickets[1]))  # empties the buffer: the third is now one version old
    server.receive(report(server, tickets[2]))
    fresh = max(server.outstanding)
    (merge,) = [output for output in server.receive(report(server, fresh)) if isinstance(output, Merge)]
    assert dict(zip(merge.tickets, merge.weights, strict=True)) == {tickets[2]: 0.5 * 2**-0.5, fresh: 0.5}


@pytest.mark.parametrize("inner", [FedAsync(concurrency=4), FedBuff(concurrency=4, buffer_size=2)])
@pytest.mark.parametrize("bound", [1, 2, 4])
def test_waiting_keeps_every_merge_within_the_bound(inner, bound):
    server = Server(BoundedStaleness(strategy=inner, max_staleness=bound, when_stale="wait"), [1] * 6)
    base = {}
    outputs = server.start()
    merged = 0
    for step in range(200):
        for output in outputs:
            if isinstance(output, Merge):
                merged += 1
        base |= {t: d.base_version for t, d in server.outstanding.items()}
        assert all(server.version - d.base_version <= bound for d in server.outstanding.values())
        assert len(server.outstanding) + len(server.waiting) <= 4 + inner.dispatch.merged_at_once
        tickets = list(server.outstanding)
        ticket = tickets[0] if step % 7 == 6 else tickets[-1]
        outputs = server.receive(report(server, ticket))
    assert merged > 20


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match=r"max_staleness is -1; it must be 0 or more"):
        BoundedStaleness(strategy=FedAsync(), max_staleness=-1)
    with pytest.raises(ConfigError, match=r"concurrency is 5, but there are only 3 clients"):
        BoundedStaleness(strategy=FedAsync(), max_staleness=1).check(3)


def report(server, ticket):
    return Report(ticket, server.outstanding[ticket].client, 0.0, 1.0, 1)
