"""A reply that is still being sent keeps nobody else waiting, and is not taken for lost."""

import threading

import numpy as np
import pytest
from flwr.app import Error, Message
from flwr.common.constant import ErrorCode
from tests.flower.conftest import FakeGrid

from asyncfed.core.types import Budget
from asyncfed.flower import reply_collector
from asyncfed.flower.reply_collector import MESSAGE_UNAVAILABLE, ReplyCollector


class SlowGrid(FakeGrid):
    """Like Flower's: a reply is given to one call, which waits until it is whole. Others are told it is not there."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.sending, self.claimed, self.pulls = {}, {}, 0

    def begin_sending(self, node):
        """The node's next reply is on its way from now on, until the event that is returned."""
        message = self.inboxes[node][0].metadata.message_id
        self.work(node)
        self.sending[message] = threading.Event()
        return self.sending[message]

    def pull_messages(self, message_ids):
        self.pulls += 1
        replies = []
        for identity in list(message_ids):
            if identity in self.claimed:
                unavailable = Message(Error(ErrorCode.MESSAGE_UNAVAILABLE, "unknown"), reply_to=self.claimed[identity])
                replies.append(unavailable)
            elif identity in self.waiting:
                self.claimed[identity] = next(m for m in self.sent if m.metadata.message_id == identity)
                replies.append(self.waiting.pop(identity))
        for reply in replies:
            if not reply.has_error() and reply.metadata.reply_to_message_id in self.sending:
                self.sending[reply.metadata.reply_to_message_id].wait(20)
        return replies


@pytest.fixture
def run(federation, monkeypatch):
    monkeypatch.setattr("tests.flower.conftest.FakeGrid", SlowGrid)
    monkeypatch.setattr(reply_collector, "PATIENCE_SECONDS", 0.05)
    return federation(budget=Budget(updates=60))


def finish_sending(run, *events):
    pulls = list(run.driver._replies._pulls)
    for event in events:
        event.set()
    for pull in pulls:
        pull.join(20)


def test_others_are_heard_and_given_work_while_a_large_answer_is_on_its_way(run):
    run.step()
    [slow] = run.session.in_flight(0)
    sent = run.grid.begin_sending(run.node_of(0))
    run.step()
    fast = run.node_of(1)
    for done in range(1, 6):
        run.grid.work(fast)
        run.step()
        assert run.session.state.updates == done
    assert run.session.in_flight(0) == [slow]
    finish_sending(run, sent)
    run.step()
    assert slow in [row.ticket for row in run.events("report")]
    assert run.events("lost", "refused") == []
    run.finish()
    assert len({row.ticket for row in run.events("merge")}) == 60


def test_a_message_that_is_being_sent_is_not_asked_for_again_and_again(run):
    run.step()
    run.step()
    sent = run.grid.begin_sending(run.node_of(0))
    for _ in range(10):
        run.step()
    assert len(run.driver._replies._being_sent) == 1
    finish_sending(run, sent)
    run.step()
    assert run.driver._replies._being_sent == set()


def test_an_error_of_an_app_is_believed_while_another_answer_is_on_its_way(run):
    run.step()
    sent = run.grid.begin_sending(run.node_of(0))
    run.step()
    message = run.grid.inboxes[run.node_of(1)].pop(0)
    run.grid.waiting[message.metadata.message_id] = Message(
        Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, "<class 'ValueError'>:<'x'>"), reply_to=message
    )
    run.step()
    assert [row.reason for row in run.events("lost")] == ["its node reports error 2: ValueError"]
    finish_sending(run, sent)


def test_a_message_that_is_really_gone_is_lost_when_nobody_can_have_it(run):
    run.step()
    message = run.grid.inboxes[run.node_of(1)].pop(0)
    run.grid.claimed[message.metadata.message_id] = message
    run.step()
    assert [row.reason for row in run.events("lost")] == ["its node reports error 3"]


def test_so_many_answers_at_once_and_no_more_are_waited_for(run, monkeypatch):
    monkeypatch.setattr(reply_collector, "MAX_PULLS", 2)
    run.step()
    events = [run.grid.begin_sending(run.node_of(client)) for client in (0, 1)]
    run.step()
    run.step()
    pulls = run.grid.pulls
    run.step()
    assert run.grid.pulls <= pulls + 1
    finish_sending(run, *events)
    run.finish()
    assert run.events("lost", "refused") == []


def test_what_the_grid_raises_is_raised_to_the_driver():
    class BrokenGrid:
        def pull_messages(self, message_ids):
            raise ConnectionError("the SuperLink is gone")

    with pytest.raises(ConnectionError, match="gone"):
        ReplyCollector(BrokenGrid()).collect(["message 1"])
    assert ReplyCollector(BrokenGrid()).collect([]) == []


def test_flowers_code_is_what_it_was():
    assert ErrorCode.MESSAGE_UNAVAILABLE == MESSAGE_UNAVAILABLE


@pytest.mark.parametrize("seed", range(4))
def test_in_whatever_order_answers_begin_and_arrive_each_is_merged_once(run, seed):
    chance = np.random.default_rng(seed)
    on_their_way = []
    for _ in range(40):
        idle = [node for node in run.grid.nodes if run.grid.inboxes[node]]
        if on_their_way and chance.random() < 0.3:
            on_their_way.pop(int(chance.integers(len(on_their_way)))).set()
        elif idle and chance.random() < 0.5:
            on_their_way.append(run.grid.begin_sending(int(chance.choice(idle))))
        elif idle:
            run.grid.work(int(chance.choice(idle)))
        run.step(0.1)
    finish_sending(run, *on_their_way)
    run.finish()
    assert run.events("lost", "refused") == []
    tickets = [row.ticket for row in run.events("merge")]
    assert len(tickets) == len(set(tickets)) == 60
