"""Recorded durations: taken in order, begun again at the end, and those of all clients where none were recorded."""

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.delays import Job, RecordedDelays


def seconds(delays, client, tickets):
    return [delays.timing(client, ticket, Work(), 8).compute for ticket in tickets]


def test_jobs_are_taken_in_order_and_begin_again():
    delays = RecordedDelays({0: [Job(1.0), Job(2.0)], 1: [Job(5.0)]}, num_clients=2)
    assert seconds(delays, 0, [0, 2, 4]) == [1.0, 2.0, 1.0]
    assert seconds(delays, 1, [1, 3]) == [5.0, 5.0]


def test_the_same_ticket_takes_the_same_again():
    delays = RecordedDelays({0: [Job(1.0), Job(2.0)]}, num_clients=1)
    assert seconds(delays, 0, [7, 7, 8, 7]) == [1.0, 1.0, 2.0, 1.0]


def test_a_client_of_which_nothing_was_recorded_takes_what_all_took():
    delays = RecordedDelays({1: [Job(3.0)], 0: [Job(1.0)]}, num_clients=3)
    assert seconds(delays, 2, [0, 1, 2]) == [1.0, 3.0, 1.0]


def test_a_lost_job_is_lost_after_as_long():
    delays = RecordedDelays({0: [Job(4.0, lost=True), Job(1.0)]}, num_clients=1)
    timing = delays.timing(0, 0, Work(), 8)
    assert timing.lost
    assert delays.lost_after(0, 0, timing) == 4.0
    assert delays.finish_compute(0, 10.0, 2.5) == 12.5
    assert delays.watts(0) == 0.0


def test_a_recording_without_a_report_is_refused():
    with pytest.raises(ConfigError, match="the run has no answered ticket"):
        RecordedDelays({0: [Job(4.0, lost=True)]}, num_clients=1)
