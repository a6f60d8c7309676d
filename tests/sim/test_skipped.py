"""Tickets whose clients have nothing worth sending: settled without a merge, and what was kept counts."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Constant, Delays, Device
from asyncfed.engine import plan as plans
from asyncfed.store.events import recorded_merges
from asyncfed.store.schema import KIND_NAMES
from asyncfed.strategies import AFL, FedAsync, FedAvg, FedBuff, PublishedScripts
from asyncfed.uplinks import SendIf, TopK

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)
QUIET = replace(WORK, uplink=(SendIf(codec=TopK(fraction=0.5), threshold=1.5),))
MUTE = replace(WORK, uplink=(SendIf(threshold=1e9, measure="absolute"),))
STRATEGIES = {
    "mixing": FedAsync(concurrency=3, work=QUIET),
    "buffer": FedBuff(concurrency=4, buffer_size=3, work=QUIET),
    "cohort": FedAvg(cohort_size=3, work=QUIET),
    "own": PublishedScripts(cohort_size=3, work=replace(QUIET, start="own")),
}


def kinds_of(run):
    return [KIND_NAMES[event.kind] for event in run.journal.event_rows()]


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_run_resumed_and_replayed_are_the_same(small, run_in_pieces, tmp_path, strategy):
    experiment = small(strategy=strategy, budget=Budget(updates=25))
    whole = af.run(experiment, out=tmp_path / "whole.sqlite")
    kinds = kinds_of(whole)
    assert kinds.count("skipped") > 5
    assert whole.verdict == "finished"
    assert af.verify(tmp_path / "whole.sqlite").ok
    pieces = run_in_pieces(experiment, tmp_path / "pieces.sqlite", arrivals=4)
    assert pieces.sha256 == whole.sha256
    assert np.array_equal(pieces.rounds["skipped"], whole.rounds["skipped"])


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    threshold=st.floats(0.0, 4.0),
    measure=st.sampled_from(["absolute", "relative", "adaptive"]),
    dropout=st.sampled_from([0.0, 0.2]),
    arrivals=st.integers(1, 9),
    name=st.sampled_from(sorted(STRATEGIES)),
)
def test_whatever_is_skipped_or_lost_a_resumed_run_is_the_same(
    tmp_path_factory, small, run_in_pieces, threshold, measure, dropout, arrivals, name
):
    uplink = SendIf(codec=TopK(fraction=0.5), threshold=threshold, measure=measure, at_most=4)
    strategy = STRATEGIES[name]
    strategy = replace(strategy, work=replace(strategy.work, uplink=(uplink,)))
    delays = Delays(compute=Constant(value=2.0), dropout=dropout)
    experiment = small(strategy=strategy, budget=Budget(updates=12), delays=delays)
    folder = tmp_path_factory.mktemp("runs")
    whole = af.run(experiment, out=folder / "whole.sqlite")
    assert run_in_pieces(experiment, folder / "pieces.sqlite", arrivals).sha256 == whole.sha256
    assert af.verify(folder / "whole.sqlite").ok


def test_a_skip_leaves_the_model_as_it_is_and_is_counted(small):
    """Only skips: mixing would pull the model back to where their trainings began."""
    delays = Delays(compute=Constant(value=2.0), devices=(Device(name="all", share=1.0, watts=3.0),))
    strategy = FedAsync(concurrency=2, work=MUTE)
    run = af.run(small(strategy=strategy, budget=Budget(elapsed=9.0), delays=delays))
    skips = [event for event in run.journal.event_rows() if KIND_NAMES[event.kind] == "skipped"]
    assert len(skips) == 2 * 4
    assert {(event.duration, event.energy) for event in skips} == {(2.0, 6.0)}
    ledger = run.journal.checkpoint()[0]["ledger"]
    assert (ledger["skipped"], ledger["bytes_up"], ledger["energy"]) == (8, 8, 48.0)
    assert not run.params.any()


def test_a_cohort_goes_on_without_those_who_skip(small):
    run = af.run(small(strategy=STRATEGIES["cohort"], budget=Budget(rounds=8)))
    assert kinds_of(run).count("skipped") > 0
    sizes = [len(merge.updates) for merge in recorded_merges(run.journal.event_rows())]
    assert min(sizes) < 3
    assert sum(sizes) == kinds_of(run).count("report")


def test_slow_links_carry_only_the_byte(small):
    delays = Delays(compute=Constant(value=0.0), bandwidth_up=Constant(value=0.5))
    run = af.run(small(strategy=FedAsync(concurrency=1, work=MUTE), budget=Budget(elapsed=9.0), delays=delays))
    durations = [event.duration for event in run.journal.event_rows() if KIND_NAMES[event.kind] == "skipped"]
    assert durations == [2.0] * 4


def test_a_run_in_which_everybody_skips_for_ever_has_starved(small, monkeypatch, tmp_path):
    monkeypatch.setattr(plans, "MOST_DROPS", 30)
    monkeypatch.setattr(plans, "MOST_DROPS_A_CLIENT", 5)
    run = af.run(small(strategy=AFL(concurrency=3, work=MUTE)), out=tmp_path / "run.sqlite")
    assert run.verdict == "starved"
    assert "were skipped or dropped and none was merged" in run.reason
    assert "threshold" in run.advice
    assert kinds_of(run).count("skipped") == 30
    assert af.verify(tmp_path / "run.sqlite").ok


def test_a_threshold_of_zero_is_no_threshold(small):
    """Every change is sent whole: the same models as with a codec that sends all of it."""
    runs = [
        af.run(small(strategy=FedBuff(concurrency=3, buffer_size=2, work=replace(WORK, uplink=(uplink,)))))
        for uplink in (SendIf(codec=TopK(fraction=1.0), threshold=0.0), TopK(fraction=1.0))
    ]
    assert runs[0].sha256["params"] == runs[1].sha256["params"]
