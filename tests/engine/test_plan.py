"""What happens at the same moment of virtual time, and which comings and goings are refused."""

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget
from asyncfed.engine.plan import Churn, check_churn


def leave(time, client):
    return Churn(time=time, client=client, event="leave")


def join(time, client):
    return Churn(time=time, client=client, event="join")


def test_a_client_that_leaves_when_its_report_is_due_loses_the_ticket(tiny, events):
    run = af.run(tiny(clients=2, churn=(leave(1.0, 0),), budget=Budget(updates=1)))
    at_once = [(e.kind, e.client) for e in events(run) if e.time == 1.0]
    assert at_once[0] == ("leave", 0)
    assert [client for kind, client in at_once if kind == "report"] == [1]


def test_a_client_that_joins_when_a_report_arrives_is_at_work_before_it(tiny, events):
    run = af.run(tiny(clients=2, churn=(join(1.0, 1),), budget=Budget(updates=1)))
    at_once = [(e.kind, e.client) for e in events(run, "join", "dispatch", "report") if e.time == 1.0]
    assert at_once[:3] == [("join", 1), ("dispatch", 1), ("report", 0)]


def test_a_join_comes_before_a_loss_of_the_same_moment(tiny, scripted, events):
    experiment = tiny(clients=2, churn=(join(1.0, 1),), budget=Budget(updates=1))
    run = af.run(experiment, delays=scripted(lost={0}))
    assert [e.kind for e in events(run, "join", "lost") if e.time == 1.0] == ["join", "lost"]


def test_churn_of_the_same_moment_is_in_order_of_client_and_of_one_client_as_listed(tiny, events):
    churn = (leave(1.0, 2), leave(1.0, 0), join(1.0, 0), leave(1.0, 1))
    run = af.run(tiny(clients=3, churn=churn, budget=Budget(updates=1)))
    assert [(e.kind, e.client) for e in events(run, "join", "leave")] == [
        ("leave", 0),
        ("join", 0),
        ("leave", 1),
        ("leave", 2),
    ]


def test_churn_at_time_0_comes_after_the_first_dispatches(tiny, events):
    run = af.run(tiny(clients=3, churn=(leave(0.0, 0), join(0.0, 2)), budget=Budget(updates=1)))
    at_start = [(e.kind, e.client) for e in events(run, "dispatch", "leave", "join") if e.time == 0.0]
    assert sorted(at_start[:2]) == [("dispatch", 0), ("dispatch", 1)]
    assert at_start[2:] == [("leave", 0), ("join", 2), ("dispatch", 2)]


def test_churn_at_the_end_of_the_time_budget_still_happens(tiny, events):
    run = af.run(tiny(clients=2, churn=(leave(2.0, 0), leave(2.5, 1)), budget=Budget(elapsed=2.0)))
    assert [(e.time, e.client) for e in events(run, "leave")] == [(2.0, 0)]


@pytest.mark.parametrize(
    ("churn", "message"),
    [
        ((leave(1.0, 3),), r"churn names client 3, but clients are numbered 0 to 2"),
        ((leave(1.0, 0), leave(2.0, 0)), r"client 0 leave at 2 s, but its event before that was a leave too"),
    ],
)
def test_impossible_churn_is_refused(churn, message):
    with pytest.raises(ConfigError, match=message):
        check_churn(churn, 3)
