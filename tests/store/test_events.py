"""Events read by name, and merges with the clients and works of their tickets."""

import json

import pytest

import asyncfed as af
from asyncfed.core.errors import JournalError
from asyncfed.core.types import Work
from asyncfed.delays import Delays, Exponential
from asyncfed.store.events import Event, recorded_merges
from asyncfed.store.schema import DISPATCH, DROP, LOST, MERGE, REPORT
from asyncfed.strategies import FedBuff

WORK = json.dumps({"epochs": 2, "learning_rate": 0.5})


def event(kind, ticket=None, client=None, a=None, b=None, detail=None):
    return Event(0, 1.5, kind, ticket, client, 3, a, b, detail)


def test_numbers_have_names():
    report = event(REPORT, 4, 1, 2.5, 7.0, '{"loss": 0.25}')
    assert (report.require_ticket(), report.require_client(), report.duration, report.energy) == (4, 1, 2.5, 7.0)
    assert report.metrics == {"loss": 0.25}
    merge = event(MERGE, 4, 1, 0.5, 0.75)
    assert (merge.weight, merge.keep) == (0.5, 0.75)
    assert event(LOST, 4, 1, 2.0, 0.0, '"gone"').reason == "gone"
    assert event(LOST, 4, 1, 2.0, 0.0).reason is None
    assert event(5, None, 2, 30.0).num_examples == 30
    assert [event(8, None, 2, value, None, '"no"').is_fault for value in (0.0, 1.0)] == [False, True]


@pytest.mark.parametrize("name", ["duration", "energy", "weight", "keep", "num_examples", "is_fault"])
def test_a_number_that_is_missing_is_an_error(name):
    with pytest.raises(JournalError, match=r"event \d+ has no"):
        getattr(event(REPORT), name)


@pytest.mark.parametrize("name", ["require_ticket", "require_client", "require_reason"])
def test_what_is_required_must_be_there(name):
    with pytest.raises(JournalError, match=r"event \d+ has no"):
        getattr(event(REPORT), name)()


def test_merges_know_whose_updates_they_are():
    events = [
        event(DISPATCH, 0, 7, detail=WORK),
        event(DISPATCH, 1, 5, detail=WORK),
        event(DISPATCH, 2, 6, detail=WORK),
        event(DISPATCH, 3, 6, detail=WORK),
        event(DROP, 2, 6, detail='"stale"'),
        event(MERGE, 1, 5, 0.5, 1.0, '{"of": "delta", "ends_round": false}'),
        event(
            MERGE,
            b=1.0,
            detail=json.dumps(
                {
                    "tickets": [0, 3],
                    "weights": [0.25, 0.75],
                    "combiner": {"name": "latest_average", "settings": [["shares", [1, 2]]]},
                }
            ),
        ),
    ]
    single, several = recorded_merges(events)
    work = Work(epochs=2, learning_rate=0.5)
    assert (single.updates, single.rule, single.settings) == (((1, 5, 0.5, work),), None, {})
    assert several.updates == ((0, 7, 0.25, work), (3, 6, 0.75, work))
    assert (several.rule, several.settings) == ("latest_average", {"shares": [1, 2]})


@pytest.mark.parametrize("buffer_size", [1, 2])
def test_the_merges_of_a_run_are_those_that_took_part(small, buffer_size):
    strategy = FedBuff(concurrency=3, buffer_size=buffer_size, work=Work(batch_size=4))
    run = af.run(small(strategy=strategy, delays=Delays(compute=Exponential(mean=1.0))))
    counts = [0] * 4
    for merge in recorded_merges(run.journal.event_rows()):
        assert len(merge.updates) == buffer_size
        for update in merge.updates:
            counts[update.client] += 1
            assert update.work.batch_size == 4
    assert counts == run.participation().tolist()
