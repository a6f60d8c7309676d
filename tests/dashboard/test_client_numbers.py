"""What is said of clients is what the journal says: counts, shares, who is silent, left out or set aside."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.dashboard.client_list import make_client_list
from asyncfed.dashboard.client_numbers import ORDERS, STATES, client_numbers
from asyncfed.dashboard.client_page import NoSuchClientError, make_client_page
from asyncfed.dashboard.refusals import make_refusals
from asyncfed.dashboard.run_state import RunState
from asyncfed.dashboard.run_summary import make_summary
from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.staleness import make_staleness
from asyncfed.dashboard.warnings_of_run import find_warnings, left_out_clients
from asyncfed.store.loss_reasons import SET_ASIDE
from asyncfed.store.schema import DISPATCH, JOIN, LEAVE, LOST, MERGE, REFUSED, REPORT

from .conftest import NAMES, write_header
from .test_lanes import written


@pytest.fixture(scope="module")
def view(runs):
    view = RunView("named.sqlite", runs / "named.sqlite")
    view.refresh()
    return view


def test_counts_are_those_of_the_journal(view):
    run = af.load(view.path)
    numbers = client_numbers(view)
    assert numbers.merged.tolist() == run.participation().tolist()
    events = list(run.journal.event_rows())
    for kind, name in ((DISPATCH, "tickets"), (LOST, "lost")):
        counts = np.bincount([event.client for event in events if event.kind == kind], minlength=6)
        assert getattr(numbers, name).tolist() == counts.tolist()
    reports = [event for event in events if event.kind == REPORT and event.client == 1]
    assert numbers.mean_duration[1] == pytest.approx(np.mean([event.duration for event in reports]))
    assert numbers.last_heard[1] == max(event.time for event in reports)
    assert numbers.merge_share.sum() == pytest.approx(1.0)
    assert numbers.weight_share.sum() == pytest.approx(1.0)
    totals = make_summary(view)["totals"]
    assert totals["merged"] == run.rounds["updates"][-1]
    assert totals["bytes_up"] == run.rounds["bytes_up"][-1]


def test_the_summary_is_about_this_run(view):
    summary = make_summary(view)
    run = af.load(view.path)
    assert summary["participation"]["jain"] == pytest.approx(run.rounds["jain_index"][-1])
    assert (summary["state"], summary["progress"], summary["rounds"]) == ("finished", 1.0, 30)
    assert summary["metrics"]["objective"] == pytest.approx(run.final["objective"])
    assert af.from_toml(summary["toml"]) == run.experiment


def test_staleness_is_that_of_the_rounds(view):
    histogram, run = make_staleness(view), af.load(view.path)
    assert histogram["max"] == run.rounds["staleness_max"].max()
    assert sum(histogram["counts"]) == run.rounds["updates"][-1]


@pytest.mark.parametrize("order", ORDERS)
def test_every_client_is_once_in_every_order(view, order):
    found = make_client_list(view, order, 0, 1000, "")
    assert sorted(row["client"] for row in found["clients"]) == list(range(6))
    first = make_client_list(view, order, 2, 2, "")
    assert first["clients"] == found["clients"][2:4]
    assert first["total"] == 6


def test_clients_are_found_by_name(view):
    assert [row["name"] for row in make_client_list(view, "number", 0, 10, "SCRIPT")["clients"]] == [NAMES[0]]
    assert make_client_list(view, "number", 0, 10, "nobody")["total"] == 0


def test_the_page_of_a_client(view):
    page = make_client_page(view, 3)
    assert page["num_tickets"] == len(page["tickets"]) == client_numbers(view).tickets[3]
    assert sum(page["durations"]["counts"]) == len(page["over_time"]["time"])
    with pytest.raises(NoSuchClientError, match="0 to 5"):
        make_client_page(view, 6)


@pytest.fixture
def troubled(tmp_path):
    """Client 0 works, 1 was set aside, 2 has been out far too long; of a run that is running."""
    rows = [(0.0, DISPATCH, 1, 1, None, None), (0.0, DISPATCH, 2, 2, None, None)]
    rows[:0] = [(0.0, DISPATCH, 0, 0, None, None)]
    rows += [(1.0, REFUSED, 1, 1, 1, "its numbers are not finite"), (1.0, LOST, 1, 1, 1.0, "its reply was refused"),
             (1.0, LEAVE, None, 1, None, SET_ASIDE)]  # fmt: skip
    for ticket in range(3, 13):
        before = 0 if ticket == 3 else ticket - 1
        rows += [(float(ticket), REPORT, before, 0, 1.0, None), (float(ticket), MERGE, before, 0, 0.5, "x"),
                 (float(ticket), DISPATCH, ticket, 0, None, None)]  # fmt: skip
    view = written(tmp_path / "run.sqlite", rows)
    view.state = RunState("running", None)
    return view


def test_who_is_silent_set_aside_or_left_out_cannot_be_missed(troubled):
    numbers = client_numbers(troubled)
    assert [STATES[state] for state in numbers.state] == ["working", "set aside", "never heard"]
    assert [row["client"] for row in left_out_clients(troubled)] == [1, 2]
    warnings = [(w["level"], w["kind"], w["client"]) for w in find_warnings(troubled)]
    assert ("alarm", "left out", 1) in warnings
    assert ("alarm", "left out", 2) in warnings
    assert ("alarm", "set aside", 1) in warnings
    assert make_client_list(troubled, "silent", 0, 3, "")["clients"][0]["client"] == 1


def test_refusals_say_who_and_why(troubled):
    refusals = make_refusals(troubled, 0, 10)
    assert (refusals["total"], refusals["refusals"][0]["client"]) == (1, 1)
    assert refusals["refusals"][0]["reason"] == "its numbers are not finite"
    assert refusals["refusals"][0]["is_fault"]
    assert make_refusals(troubled, 0, 10, client=0)["total"] == 0


def test_a_client_that_came_back_is_there(tmp_path):
    rows = [(0.0, DISPATCH, 0, 0, None, None), (1.0, REPORT, 0, 0, 1.0, None), (2.0, LEAVE, None, 0, None, None),
            (3.0, JOIN, None, 0, 5, None)]  # fmt: skip
    view = written(tmp_path / "run.sqlite", rows)
    assert STATES[client_numbers(view).state[0]] == "idle"


def test_clients_above_the_number_in_the_header_are_counted_too(tmp_path):
    view = written(tmp_path / "run.sqlite", [(0.0, JOIN, None, 7, 5, None), (1.0, DISPATCH, 0, 7, None, None)])
    assert view.num_clients == 8
    assert client_numbers(view).tickets.tolist() == [0] * 7 + [1]


def test_names_of_the_wrong_kind_are_not_used(tmp_path):
    view = written(tmp_path / "run.sqlite", [(0.0, JOIN, None, 0, 5, None)])
    for names in ("abc", {"0": "x"}, [], ["only one"]):
        write_header(view.path, client_names=names)
        view.refresh()
        assert view.client_name(2) == "2"
