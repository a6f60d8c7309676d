"""What client and server both remember is the same to the bit: simulated, with losses, drops and interruptions."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Constant, Delays, Uniform
from asyncfed.strategies import ACE, AFL, FedBuff, PublishedScripts
from asyncfed.uplinks import EF21, TopK, Whole

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01, uplink=(EF21(codec=TopK(fraction=0.3)),))
STRATEGIES = {
    "table": ACE(concurrency=3, work=WORK),
    "buffer": FedBuff(concurrency=4, buffer_size=3, work=WORK),
    "drops": AFL(concurrency=4, max_staleness=1, when_stale="drop", work=WORK),
    "own": PublishedScripts(cohort_size=3, work=replace(WORK, start="own")),
}


def states(run):
    """By client and ticket: the estimates of client and server in a run's last checkpoint."""
    arrays = run.journal.checkpoint()[1]
    found = []
    for prefix, name in (("client_memory/", "/0/state"), ("mirror/", "/state")):
        named = {key.removeprefix(prefix).removesuffix(name): key for key in arrays if key.startswith(prefix)}
        found.append({key: arrays[full].tobytes() for key, full in named.items()})
    return found


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(STRATEGIES)), dropout=st.sampled_from([0.0, 0.3]), arrivals=st.integers(1, 9))
def test_both_sides_are_equal_and_a_resumed_run_is_the_same(
    tmp_path_factory, small, run_in_pieces, name, dropout, arrivals
):
    delays = Delays(compute=Constant(value=2.0), slowness=Uniform(low=0.5, high=1.5), dropout=dropout)
    experiment = small(strategy=STRATEGIES[name], budget=Budget(updates=20), delays=delays)
    folder = tmp_path_factory.mktemp("runs")
    whole = af.run(experiment, out=folder / "whole.sqlite")
    pieces = run_in_pieces(experiment, folder / "pieces.sqlite", arrivals)
    assert pieces.sha256 == whole.sha256
    assert af.verify(folder / "whole.sqlite").ok
    last = dict(whole.journal.checkpoint()[0]["server"]["memories"])
    for run in (whole, pieces):
        client, server = states(run)
        common = client.keys() & server.keys()
        assert {f"{c}/{ticket}" for c, ticket in last.items() if ticket >= 0} <= common
        assert all(client[key] == server[key] for key in common)


def test_an_update_that_is_dropped_moves_neither_side(small):
    """Nobody's update is fresh enough; both go back to where they were, so nothing is ever remembered."""
    strategy = AFL(concurrency=4, max_staleness=0, when_stale="drop", work=WORK)
    run = af.run(small(strategy=strategy, budget=Budget(updates=8)))
    events = list(run.journal.event_rows())
    dropped = {event.ticket for event in events if event.kind == 3}
    told = {int(event.a) for event in events if event.kind == 0}
    assert dropped
    assert not dropped & told


def test_with_all_of_the_change_sent_it_is_the_table_strategy_itself(small):
    runs = [
        af.run(small(strategy=ACE(concurrency=3, work=work), budget=Budget(updates=30)))
        for work in (replace(WORK, uplink=(EF21(codec=Whole()),)), replace(WORK, uplink=()))
    ]
    assert runs[0].params == pytest.approx(runs[1].params, rel=1e-9, abs=1e-12)


def test_compressed_it_comes_to_the_same_point_as_uncompressed(small):
    """With whole batches changes settle down and estimates become them: nothing is missing in the end."""
    work = replace(WORK, batch_size=1000, learning_rate=0.05)
    ends = [
        af.run(small(strategy=ACE(concurrency=3, work=replace(work, uplink=uplink)), budget=Budget(updates=900)))
        for uplink in ((EF21(codec=TopK(fraction=0.3)),), (), (TopK(fraction=0.3),))
    ]
    compressed, plain, forgetful = (run.final["objective"] for run in ends)
    assert compressed == pytest.approx(plain, rel=1e-4)
    assert forgetful > 1.01 * plain
