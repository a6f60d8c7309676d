"""Times, late answers and faults, as a live session records them."""

import json

from asyncfed.core.types import Dispatch, Work
from asyncfed.live import ticket_records
from asyncfed.live.checks import Limits
from asyncfed.live.ticket_records import TicketRecords


def records(**limits):
    return TicketRecords(Limits(**limits))


def test_a_client_can_begin_with_a_ticket_when_the_one_before_is_done():
    tickets = records()
    tickets.dispatched_at = {0: 1.0, 1: 1.0}
    assert tickets.start_time(0, 5) == 1.0
    assert tickets.close(0, 5, 9.0) == 8.0
    assert tickets.start_time(1, 5) == 9.0
    assert 0 not in tickets.dispatched_at


def test_the_time_of_a_waiting_ticket_has_not_begun():
    """One client, two tickets: the second is not overdue while the first is being worked on."""
    tickets = records(ticket_seconds=10.0)
    one, two = Dispatch(0, 5, 0, Work()), Dispatch(1, 5, 0, Work())
    tickets.dispatched_at = {0: 0.0, 1: 0.0}
    assert tickets.find_overdue([one, two], 10.0) == []
    assert tickets.find_overdue([one, two], 11.0) == [one]
    tickets.close(0, 5, 9.0)
    assert tickets.find_overdue([two], 11.0) == []
    assert tickets.find_overdue([two], 19.5) == [two]


def test_without_a_limit_no_ticket_is_overdue():
    tickets = records(ticket_seconds=None)
    tickets.dispatched_at = {0: 0.0}
    assert tickets.find_overdue([Dispatch(0, 5, 0, Work())], 1e9) == []


def test_one_late_answer_to_a_ticket_is_excused_for_its_own_client():
    tickets = records()
    tickets.give_up(7, 5)
    assert not tickets.excuse_late_answer(7, 4)
    assert tickets.excuse_late_answer(7, 5)
    assert not tickets.excuse_late_answer(7, 5)


def test_only_the_last_given_up_tickets_are_remembered(monkeypatch):
    monkeypatch.setattr(ticket_records, "MAX_GIVEN_UP", 2)
    tickets = records()
    for ticket in range(3):
        tickets.give_up(ticket, 5)
    assert list(tickets.given_up) == [1, 2]


def test_a_client_is_excluded_for_faults_and_not_for_bad_luck():
    tickets = records(faults=2)
    for is_fault in (True, False, False):
        tickets.count_refusal(5, is_fault)
    assert not tickets.excluded
    tickets.count_refusal(5, is_fault=True)
    assert (tickets.excluded, tickets.refused) == ({5}, 4)


def test_restored_records_are_those_that_were_written():
    tickets = records(faults=1)
    tickets.dispatched_at, tickets.free_since = {3: 0.5}, {5: 0.25}
    tickets.give_up(2, 4)
    tickets.count_refusal(4, is_fault=True)
    tickets.norms.add(1.5)
    written = json.loads(json.dumps(tickets.snapshot("a name")))
    restored = records(faults=1)
    restored.restore(written)
    assert json.loads(json.dumps(restored.snapshot("a name"))) == written
    assert restored.excluded == {4}
    assert restored.excuse_late_answer(2, 4)


def test_checkpoints_have_the_keys_that_earlier_versions_read_and_wrote():
    keys = {"handed_out_at", "free_since", "given_up", "faults", "set_aside", "refused", "norms"}
    assert set(records().snapshot("a name")) == {*keys, "names"}  # which earlier versions do not read
