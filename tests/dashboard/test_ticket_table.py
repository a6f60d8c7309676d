"""The table of tickets says what the events say, in whatever batches they come."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.record import pack_rows, unpack_rows
from asyncfed.dashboard.ticket_table import COLUMNS, IN_FLIGHT, MERGED, OUTCOMES, TicketTable
from asyncfed.kernels.event_columns import read_event_columns
from asyncfed.store.events import recorded_merges
from asyncfed.store.journal_tail import JournalTail
from asyncfed.store.schema import DISPATCH, LEAVE, LOST, MERGE, REFUSED, REPORT


def table_of(rows, details=(), cuts=()):
    table, bounds = TicketTable(), [0, *cuts, len(rows)]
    for first, last in pairwise(bounds):
        part = rows[first:last]
        table.add(read_event_columns(pack_rows(part), len(part)), dict(enumerate(details)))
    return table


@pytest.fixture(scope="module", params=["afl", "fedbuff", "fedavg"])
def run(request, tmp_path_factory):
    experiment = af.presets.regression(strategy=request.param, num_clients=12, rounds=20)
    experiment = af.replace(experiment, delays=af.replace(experiment.delays, dropout=0.1))
    return af.run(experiment, out=tmp_path_factory.mktemp("runs") / "run.sqlite")


def test_merges_are_those_of_the_journal(run):
    new = JournalTail(run.journal.path).read()
    table = TicketTable()
    table.add(read_event_columns(new.events, new.num_events), dict(new.details))
    merges = list(recorded_merges(run.journal.event_rows()))
    expected = {update.ticket: (merge.event.time, update.client) for merge in merges for update in merge.updates}
    merged = np.flatnonzero(table["outcome"] == MERGED)
    found = zip(merged.tolist(), table["merged"][merged].tolist(), table["client"][merged].tolist(), strict=True)
    assert {ticket: (time, client) for ticket, time, client in found} == expected
    counts = np.bincount(table["client"][merged], minlength=12)
    assert counts.tolist() == run.participation().tolist()
    lost = int((table["outcome"] == OUTCOMES.index("lost")).sum())
    assert lost == run.rounds["lost"][-1] or lost > run.rounds["lost"][-1]  # some after the last round
    assert table["staleness"][merged].max() == run.rounds["staleness_max"].max()


@settings(max_examples=20)
@given(st.data())
def test_batches_do_not_matter(run, data):
    new = JournalTail(run.journal.path).read()
    rows = unpack_rows(new.events, new.num_events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    texts = [text for _, text in new.details]
    whole, parts = table_of(rows, texts), table_of(rows, texts, cuts)
    for column in COLUMNS:
        assert np.array_equal(whole[column], parts[column], equal_nan=COLUMNS[column][0] is np.float64)
    assert (whole.now, whole.version, whole.stopped) == (parts.now, parts.version, parts.stopped)


def test_what_becomes_of_tickets():
    rows = [
        [0, 0.0, DISPATCH, 0, 7, 0, None, None, 0],
        [1, 0.0, DISPATCH, 1, 8, 0, None, None, 0],
        [2, 0.0, DISPATCH, 2, 9, 0, None, None, 0],
        [3, 1.0, REPORT, 0, 7, 0, 0.9, 3.0, None],
        [4, 1.0, MERGE, 0, 7, 1, 0.5, 0.5, 1],
        [5, 2.0, REFUSED, 1, 8, 1, 1.0, None, 2],
        [6, 2.0, LOST, 1, 8, 1, 2.0, 1.0, 3],
        [7, 3.0, DISPATCH, 3, 9, 1, None, None, 0],
        [8, 4.0, LEAVE, None, 9, 1, None, None, 4],
        [9, 4.0, DISPATCH, 4, 7, 1, None, None, 0],
    ]
    table = table_of(rows)
    assert [OUTCOMES[code] for code in table["outcome"]] == ["merged", "lost", "lost", "lost", "in flight"]
    assert table["ended"].tolist()[:4] == [1.0, 2.0, 4.0, 4.0]
    assert table["staleness"][0] == 0
    assert table["weight"][0] == 0.5
    refusal, leave = table.client_events
    assert (refusal.client, refusal.ticket, refusal.is_fault) == (8, 1, True)
    assert (leave.client, leave.ticket, leave.is_fault) == (9, -1, False)
    assert table["outcome"][4] == IN_FLIGHT
    assert table.num_events == 10
