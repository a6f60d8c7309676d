"""Lanes show what the tickets say, in segments or bins, and a client that is gone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.types import Work
from asyncfed.dashboard import lanes
from asyncfed.dashboard.lanes import CODES, make_lanes, merge_times
from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.ticket_phases import ticket_phases
from asyncfed.delays import Constant, LogNormal
from asyncfed.store.journal import Journal
from asyncfed.store.loss_reasons import SET_ASIDE
from asyncfed.store.schema import DISPATCH, JOIN, LEAVE, LOST, REFUSED, REPORT

HEADER = {"num_clients": 3, "verdict": "interrupted", "reason": "", "asyncfed": "test",
          "experiment": {"strategy": {"kind": "afl"}}}  # fmt: skip


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    """A simulated run with downloads and uploads."""
    path = tmp_path_factory.mktemp("runs") / "run.sqlite"
    experiment = af.presets.regression(strategy="fedasync", num_clients=5, rounds=20)
    delays = af.replace(
        experiment.delays, dropout=0.1, download=LogNormal(median=0.002, sigma=0.5), upload=Constant(value=0.003)
    )
    af.run(af.replace(experiment, delays=delays), out=path).journal.close()
    view = RunView("run.sqlite", path)
    view.refresh()
    return view


def written(path, rows):
    journal = Journal.create(path, HEADER)
    for seq, (time, kind, ticket, client, a, detail) in enumerate(rows):
        number = None if detail is None else journal.intern(f'"{detail}"')
        journal.events.append((seq, time, kind, ticket, client, 0, a, None, number))
    journal.next_seq = len(rows)
    journal.commit({"now": 0.0}, {})
    journal.close()
    view = RunView(path.name, path)
    view.refresh()
    return view


def test_phases_are_those_of_the_simulator(view):
    experiment = af.load(view.path).experiment
    model = experiment.delays.bind(5, experiment.seed)
    table = view.tickets
    phases = ticket_phases(view, table["client"], np.arange(table.count))
    for ticket, client in enumerate(table["client"].tolist()):
        timing = model.timing(client, ticket, Work(), 1)
        assert (phases.download[ticket], phases.upload[ticket]) == (timing.download, timing.upload)
    for lane in make_lanes(view, np.arange(5), 0.0, view.now, 2000):
        by_ticket = {}
        for begin, end, code, ticket in lane["segments"]:
            by_ticket.setdefault(ticket, {})[CODES[code]] = (begin, end)
        for ticket, parts in by_ticket.items():
            if "train" in parts:
                assert parts["download"][0] == pytest.approx(table["sent"][ticket], abs=1e-5)
                assert parts["upload"][1] == pytest.approx(table["ended"][ticket], abs=1e-5)
                assert parts["upload"][1] - parts["upload"][0] == pytest.approx(0.003, abs=1e-5)
                lasted = sum(end - begin for name, (begin, end) in parts.items() if name != "waiting")
                assert lasted == pytest.approx(table["duration"][ticket], abs=1e-5)


def test_a_run_that_names_files_is_shown_without_reading_them(view):
    forged = RunView("x", view.path)
    forged.refresh()
    forged.header["experiment"]["delays"]["trace"] = "/etc/passwd"
    forged.header["experiment"]["delays"]["availability"] = {"kind": "whatever", "path": "/etc/passwd"}
    assert ticket_phases(forged, np.array([0]), np.array([0])) is not None


def test_what_happened_to_a_client_is_in_its_lane(tmp_path):
    rows = [
        (0.0, DISPATCH, 0, 0, None, None), (0.0, DISPATCH, 1, 1, None, None), (0.0, DISPATCH, 2, 2, None, None),
        (2.0, REPORT, 0, 0, 1.5, None), (3.0, LOST, 1, 1, 3.0, "gone"), (4.0, REFUSED, 2, 2, 1, "nonsense"),
        (5.0, LEAVE, None, 2, None, SET_ASIDE), (6.0, LEAVE, None, 1, None, None), (8.0, JOIN, None, 1, 5, None),
        (10.0, DISPATCH, 3, 0, None, None), (11.0, JOIN, None, 1, 5, None),
    ]  # fmt: skip
    view = written(tmp_path / "run.sqlite", rows)
    shown = {
        lane["client"]: [(begin, end, CODES[code]) for begin, end, code, _ in lane["segments"]]
        for lane in make_lanes(view, np.arange(3), 0.0, 11.0, 400)
    }
    assert shown[0] == [(0.0, 0.5, "waiting"), (0.5, 2.0, "train"), (10.0, 11.0, "in flight")]
    assert shown[1] == [(0.0, 3.0, "lost"), (6.0, 8.0, "away")]
    assert shown[2] == [(0.0, 5.0, "lost"), (4.0, 4.0, "refused"), (5.0, 11.0, "set aside")]


def test_bins_where_there_are_more_tickets_than_pixels(tmp_path, monkeypatch):
    monkeypatch.setattr(lanes, "PIXELS_OF_A_TICKET", 1000)
    rows = [
        (0.0, DISPATCH, 0, 0, None, None), (5.0, REPORT, 0, 0, 5.0, None),
        (6.0, DISPATCH, 1, 0, None, None), (8.5, LOST, 1, 0, 2.5, None), (9.0, LEAVE, None, 0, None, SET_ASIDE),
        (10.0, JOIN, None, 1, 1, None),
    ]  # fmt: skip
    view = written(tmp_path / "run.sqlite", rows)
    (lane,) = make_lanes(view, np.array([0]), 0.0, 10.0, 10)
    assert lane["segments"] is None
    assert [(CODES[code], share) for code, share in lane["bins"]] == (
        [("train", 1.0)] * 5 + [("train", 0.0)] + [("lost", 1.0)] * 2 + [("lost", 0.5)] + [("set aside", 1.0)]
    )


@settings(max_examples=30)
@given(
    spans=st.lists(st.tuples(st.floats(0, 9), st.floats(0, 3)), min_size=1, max_size=30),
    width=st.integers(1, 50),
)
def test_bins_hold_as_much_time_as_the_tickets(spans, width):
    """Of tickets that do not overlap, the shares of all pieces add up to the time at work."""
    begun = np.cumsum([0.1 + gap + length for gap, length in spans])
    lengths = np.array([length for _, length in spans])
    part = {"sent": begun - lengths, "ended": begun, "duration": lengths, "outcome": np.full(len(spans), 2, np.uint8)}
    end = float(begun[-1]) + 1.0
    bins = lanes._bins(part, 0.0, end, width, [], end)
    assert len(bins) == width
    assert sum(share for _, share in bins) * end / width == pytest.approx(lengths.sum(), abs=end * 0.0006 + 1e-9)


def test_merges_are_marked_unless_they_would_cover_all(view, monkeypatch):
    marks = merge_times(view, np.array([1, 2]), 0.0, view.now)
    merged = view.tickets["merged"]
    expected = np.isfinite(merged) & np.isin(view.tickets["client"], [1, 2])
    assert len(marks) == expected.sum()
    monkeypatch.setattr(lanes, "MOST_MERGES", 3)
    assert merge_times(view, np.array([1, 2]), 0.0, view.now) is None
