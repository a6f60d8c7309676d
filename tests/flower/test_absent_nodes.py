"""Nodes that are away for an hour and come back: what becomes of their ticket, their late answer and their memory."""

import asyncfed as af
from asyncfed.core.types import Budget, Work
from asyncfed.flower.client_nodes import QUERY_SECONDS
from asyncfed.flower.messages import unpack_message
from asyncfed.live.wire import Task
from asyncfed.runs.progress import seal
from asyncfed.strategies import AFL
from asyncfed.uplinks import ErrorFeedback, TopK

HOUR = 3600.0


def take_away(run, client):
    """The node goes offline, with what it is working on. Returns its number."""
    gone = run.node_of(client)
    run.grid.inboxes.setdefault(gone, [])
    del run.grid.nodes[gone]
    run.step()
    assert [row.client for row in run.events("leave")] == [client]
    return gone


def others_work_for(run, seconds, but):
    until = run.now + seconds
    while run.now < until:
        run.step(min(10.0, until - run.now))
        for node in run.grid.nodes:
            while node != but and run.grid.inboxes[node]:
                run.grid.work(node)


def come_back(run, client, node):
    """The node is online again; it introduces itself when it is queried."""
    run.grid.add(client, node)
    run.step()
    assert run.grid.inboxes[node][-1].metadata.message_type == "query"
    while run.grid.inboxes[node]:
        run.grid.work(node)
    run.step()


def test_a_node_that_is_away_for_an_hour_costs_its_ticket_and_is_welcome_again(federation):
    run = federation(budget=Budget(updates=2000))
    run.step()
    [ticket] = run.session.in_flight(2)
    gone = take_away(run, 2)
    assert not run.session.is_in_flight(ticket)
    merged = run.session.state.updates
    others_work_for(run, HOUR, but=gone)
    assert run.session.state.updates > merged + 100  # nobody waited
    run.grid.inboxes[gone].clear()  # Flower has dropped its message long ago
    come_back(run, 2, gone)
    assert [row.client for row in run.events("join")] == [2]
    assert run.session.excluded == frozenset()
    [again] = run.session.in_flight(2)
    run.grid.work(gone)
    run.step()
    assert again in [row.ticket for row in run.events("report")]
    assert run.driver._tasks.keys() == {
        message.metadata.message_id for box in run.grid.inboxes.values() for message in box
    }


def test_the_late_answer_of_a_node_that_is_back_is_refused_and_is_no_fault(federation):
    run = federation(budget=Budget(updates=2000))
    for times in range(5):  # more often than faults are forgiven
        run.step()
        gone, before = run.node_of(2), len(run.events("leave"))
        del run.grid.nodes[gone]
        run.step()
        assert len(run.events("leave")) == before + 1
        others_work_for(run, 20.0, but=gone)
        come_back(run, 2, gone)  # it answers what it had before it introduces itself
        late = [row for row in run.events("refused") if row.client == 2]
        assert len(late) == times + 1
        assert not any(row.is_fault for row in late)
    assert run.session.excluded == frozenset()
    assert len(run.session.in_flight(2)) == 1


def test_what_a_client_remembers_outlasts_an_hour_away_without_the_update_that_was_refused(federation):
    """The late training changed the memory of its own ticket alone; the next one starts from the accepted one."""
    work = Work(epochs=1, batch_size=4, learning_rate=0.01, uplink=(ErrorFeedback(codec=TopK(fraction=0.3)),))
    run = federation(strategy=AFL(concurrency=3, aggregate="delta_mean", work=work), budget=Budget(updates=900))
    run.step()
    for node in run.grid.nodes:
        run.grid.work(node)
    run.step()
    [accepted] = [row.ticket for row in run.events("report") if row.client == 2]
    gone = take_away(run, 2)
    run.grid.nodes[gone] = 2
    run.grid.run_app(run.grid.inboxes[gone].pop(), gone)  # it trains all the same; nobody gets the answer
    del run.grid.nodes[gone]
    others_work_for(run, HOUR, but=gone)
    come_back(run, 2, gone)
    task, _ = unpack_message(run.task(2).content, Task, 10_000)
    assert task.memory == accepted
    run.grid.work(gone)
    run.step()
    assert [row.memory for row in run.events("report") if row.client == 2] == [None, None]  # as the task said
    run.finish()
    seal(run.session, run.journal)
    verification = af.verify(run.path)
    assert verification.ok, verification.lines


def test_a_pause_does_not_outlast_an_absence(federation):
    """A node that hung has to wait longer each time; one that was away and is back has not."""
    run = federation(budget=Budget(updates=2000))
    run.step()
    node = run.node_of(2)
    for _ in range(8):
        run.driver.nodes.pause(node, run.now)
    assert run.driver.nodes.query_again_at[node] > run.now + HOUR - 1
    take_away(run, 2)
    run.grid.inboxes[node].clear()
    run.grid.add(2, node)
    run.step()
    assert not run.grid.inboxes[node]
    others_work_for(run, QUERY_SECONDS + 1, but=node)
    assert run.grid.inboxes[node][-1].metadata.message_type == "query"


def test_a_node_in_place_of_one_that_died_is_queried_as_soon_as_that_one_is_missed(federation):
    run = federation(budget=Budget(updates=2000))
    run.step()
    old, new = run.node_of(2), run.grid.add(2, 777)
    run.step()
    run.grid.work(new)
    run.step()
    assert f"client 2 is node {old} already" in run.logged[-1]
    del run.grid.nodes[old]
    run.grid.inboxes[old].clear()
    run.step()
    assert run.grid.inboxes[new][-1].metadata.message_type == "query"
    run.grid.work(new)
    run.step()
    assert run.node_of(2) == new
    assert len(run.session.in_flight(2)) == 1
