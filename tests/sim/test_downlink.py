"""Models sent as compressed differences: what is left out is in the next one, and bytes and time are counted."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, replace
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Constant, Delays, Uniform
from asyncfed.store.schema import DISPATCH, KIND_NAMES
from asyncfed.strategies import ACE, AFL, FedAsync, FedAvg, FedBuff, Ringleader
from asyncfed.strategies.samplers import UniformAll
from asyncfed.uplinks import EF21, QSGD, ErrorFeedback, SendIf, TopK, Whole

SPARSE = TopK(fraction=0.3)
WORK = Work(epochs=1, batch_size=4, learning_rate=0.01, downlink=SPARSE)
STRATEGIES = {
    "mixing": FedAsync(concurrency=3, work=WORK),
    "buffer": FedBuff(concurrency=4, buffer_size=3, work=replace(WORK, uplink=(ErrorFeedback(codec=SPARSE),))),
    "random": FedBuff(concurrency=4, buffer_size=3, work=replace(WORK, downlink=QSGD())),
    "table": ACE(concurrency=3, work=replace(WORK, uplink=(EF21(codec=SPARSE),))),
    "drops": AFL(concurrency=4, max_staleness=1, when_stale="drop", work=WORK),
    "skips": FedAvg(cohort_size=3, work=replace(WORK, uplink=(SendIf(threshold=1.2, at_most=3),))),
}


def down(run):
    """Bytes that went down, and how many tickets went out."""
    tickets = sum(KIND_NAMES[event.kind] == "dispatch" for event in run.journal.event_rows())
    return run.journal.checkpoint()[0]["ledger"]["bytes_down"], tickets


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(STRATEGIES)), dropout=st.sampled_from([0.0, 0.3]), arrivals=st.integers(1, 9))
def test_run_resumed_and_replayed_are_the_same(tmp_path_factory, small, run_in_pieces, name, dropout, arrivals):
    delays = Delays(
        compute=Constant(value=2.0),
        slowness=Uniform(low=0.5, high=1.5),
        dropout=dropout,
        bandwidth_down=Constant(value=50.0),
    )
    experiment = small(strategy=STRATEGIES[name], budget=Budget(updates=20), delays=delays)
    folder = tmp_path_factory.mktemp("runs")
    whole = af.run(experiment, out=folder / "whole.sqlite")
    pieces = run_in_pieces(experiment, folder / "pieces.sqlite", arrivals)
    assert pieces.sha256 == whole.sha256
    assert np.array_equal(pieces.rounds["bytes_down"], whole.rounds["bytes_down"])
    assert af.verify(folder / "whole.sqlite").ok


def test_a_client_that_has_no_model_is_sent_one_and_later_differences(small):
    run = af.run(small(strategy=STRATEGIES["mixing"], budget=Budget(updates=40)))
    events = list(run.journal.event_rows())
    first = sum(KIND_NAMES[event.kind] == "dispatch" and event.a == -1.0 for event in events)
    size, params = SPARSE.size(run.params.size, 8), run.params
    total, tickets = down(run)
    assert 0 < first < tickets
    assert total == first * params.nbytes + (tickets - first) * size


def test_on_a_slow_link_the_download_takes_as_much_less_time(small):
    delays = Delays(compute=Constant(value=0.0), bandwidth_down=Constant(value=8.0))
    experiment = small(strategy=FedAvg(cohort_size=4, work=WORK), budget=Budget(rounds=5), delays=delays, num_clients=4)
    run = af.run(experiment)
    first, *rest = np.diff([0.0, *run.rounds["elapsed"]])
    assert first == pytest.approx(run.params.nbytes / 8.0)
    assert rest == pytest.approx([SPARSE.size(run.params.size, 8) / 8.0] * 4)


def test_with_all_of_the_difference_sent_it_is_the_model(small):
    works = [replace(WORK, downlink=downlink) for downlink in (UNSET, Whole(), TopK(fraction=1.0))]
    plain, *others = (af.run(small(strategy=FedBuff(concurrency=3, buffer_size=2, work=work))) for work in works)
    for run in others:
        assert run.params == pytest.approx(plain.params, rel=1e-9, abs=1e-12)


def test_what_is_left_out_is_in_the_next_difference(small):
    """With whole batches, a run that merges changes ends where it would if models had been sent whole."""
    work, budget = replace(WORK, batch_size=1000, learning_rate=0.02), Budget(updates=1500)
    strategies = [
        FedBuff(concurrency=4, buffer_size=4, work=replace(work, downlink=downlink))
        for downlink in (TopK(fraction=0.1), Whole())
    ]
    sparse, whole = (af.run(small(strategy=strategy, budget=budget)) for strategy in strategies)
    assert sparse.final["objective"] == pytest.approx(whole.final["objective"], rel=0.02)
    assert down(sparse)[0] < 0.3 * down(whole)[0]


def test_a_ticket_from_an_older_version_starts_from_a_difference_to_that_version(small, tmp_path):
    """Ringleader lets a client compute again at the point where it was; all of it sent, that is the same model."""
    delays = Delays(compute=Constant(value=1.0), slowness=Uniform(low=0.2, high=2.0))
    ends = []
    for downlink in (UNSET, Whole(), SPARSE):
        strategy = Ringleader(work=replace(WORK, downlink=downlink))
        path = tmp_path / f"{len(ends)}.sqlite"
        ends.append(af.run(small(strategy=strategy, budget=Budget(updates=40), delays=delays), out=path))
        assert af.verify(path).ok
    versions = [(event.version, event.time) for event in ends[0].journal.event_rows() if event.kind == DISPATCH]
    assert any(later[0] < earlier[0] for earlier, later in pairwise(versions))
    assert ends[1].params == pytest.approx(ends[0].params, rel=1e-9, abs=1e-12)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ConfigError, match="downlink is ErrorFeedback, which has a memory of its own"):
        Work(downlink=ErrorFeedback())
    with pytest.raises(ConfigError, match=r'nothing to send: work.start is "own"'):
        Work(downlink=TopK(), start="own")
    with pytest.raises(ConfigError, match=r"work.uplink or work.downlink they remember something"):
        FedAsync(concurrency=3, sampler=UniformAll(), work=WORK).check(5)
