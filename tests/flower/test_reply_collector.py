"""A reply that is still being sent keeps nobody else waiting, and is not taken for lost."""

import threading

import numpy as np
import pytest
from flwr.app import Error, Message, RecordDict
from flwr.common.constant import ErrorCode
from flwr.supercore.inflatable.inflatable_object import get_object_id
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents, validate_object_content
from tests.flower.conftest import FakeGrid

from asyncfed.core.types import Budget
from asyncfed.flower import reply_collector
from asyncfed.flower.reply_collector import MESSAGE_UNAVAILABLE, ReplyCollector


class SlowGrid(FakeGrid):
    """Like Flower's: a reply is given to one call, which waits until it is whole. Others are told it is not there."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.sending, self.claimed, self.pulls = {}, {}, 0
        self.claiming = threading.Lock()  # calls may overtake each other where cores are busy

    def begin_sending(self, node):
        """The node's next reply is on its way from now on, until the event that is returned."""
        message = self.inboxes[node][0].metadata.message_id
        self.sending[message] = threading.Event()
        self.work(node)
        return self.sending[message]

    def pull_messages(self, message_ids):
        with self.claiming:
            self.pulls += 1
            replies = [self._claim(identity) for identity in message_ids if self._has(identity)]
        for reply in replies:
            if not reply.has_error() and reply.metadata.reply_to_message_id in self.sending:
                self.sending[reply.metadata.reply_to_message_id].wait(20)
        return replies

    def _has(self, identity):
        return identity in self.claimed or identity in self.waiting

    def _claim(self, identity):
        if identity in self.claimed:
            return Message(Error(ErrorCode.MESSAGE_UNAVAILABLE, "unknown"), reply_to=self.claimed[identity])
        self.claimed[identity] = next(m for m in self.sent if m.metadata.message_id == identity)
        return self.waiting.pop(identity)


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


def test_what_the_grid_raises_again_and_again_is_raised_to_the_driver():
    class BrokenGrid:
        def pull_messages(self, message_ids):
            raise ConnectionError("the SuperLink is gone")

    log = []
    collector = ReplyCollector(BrokenGrid(), log.append)
    assert collector.collect([]) == collector.collect(["message 1"]) == collector.collect(["message 1"]) == []
    assert "ConnectionError" in log[0]
    with pytest.raises(ConnectionError, match="gone"):
        collector.collect(["message 1"])


UNREADABLE = {
    b"Message  3\x00abc": "DecodeError",
    b"Message  0\x00": "IndexError",
    b"RecordDict  0\x00": "JSONDecodeError",
}
"""What a SuperLink stores as a node's answer, for it looks at heads and lengths alone, and no ServerApp can unpack."""


class UnpackingGrid(SlowGrid):
    """Unpacks answers as Flower's grid does: one that cannot be unpacked is the end of the whole call."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.unreadable = {}

    def pull_messages(self, message_ids):
        replies = super().pull_messages(message_ids)
        for identity in message_ids:
            with self.claiming:
                content = self.unreadable.pop(identity, None)
            if content is not None:
                validate_object_content(content)
                inflate_object_from_contents(get_object_id(content), {get_object_id(content): content})
        return replies

    def answer_unreadably(self, node, content):
        message = self.inboxes[node].pop(0)
        self.claimed[message.metadata.message_id] = message
        self.unreadable[message.metadata.message_id] = content


@pytest.mark.parametrize("content", UNREADABLE)
def test_an_answer_that_cannot_be_unpacked_costs_its_own_ticket_and_never_the_run(federation, monkeypatch, content):
    monkeypatch.setattr("tests.flower.conftest.FakeGrid", UnpackingGrid)
    run = federation(budget=Budget(updates=30))
    run.step()
    liar, honest = run.node_of(0), run.node_of(1)
    run.grid.answer_unreadably(liar, content)
    run.step()
    run.step()
    assert any(UNREADABLE[content] in line for line in run.logged)
    for lost in range(2, 5):  # from here on nobody loses anything with it
        run.grid.answer_unreadably(liar, content)
        run.grid.work(honest)
        run.step()
        run.step()
        assert [(row.client, row.reason) for row in run.events("lost")] == lost * [(0, "its node reports error 3")]
    assert run.session.state.updates == 3
    run.finish()
    assert len({row.ticket for row in run.events("merge")}) == 30


class ScriptedGrid:
    """Each call of `pull_messages` waits for its event, then gives its replies."""

    def __init__(self, *calls):
        self.calls = list(calls)

    def pull_messages(self, message_ids):
        released, replies = self.calls.pop(0)
        released.wait(20)
        return replies


def scripted_replies():
    message = Message(RecordDict(), 1, "train")
    message.metadata.__dict__["_message_id"] = "message 1"
    return Message(RecordDict(), reply_to=message), Message(Error(MESSAGE_UNAVAILABLE, "unknown"), reply_to=message)


def test_a_reply_that_arrives_while_the_calls_are_sorted_is_there_at_the_next_look(monkeypatch):
    released, (whole, _) = threading.Event(), scripted_replies()

    def ends_after_it_was_asked(pull):
        alive = threading.Thread.is_alive(pull)
        released.set()
        pull.join(20)
        return alive

    monkeypatch.setattr(reply_collector, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(reply_collector._Pull, "is_alive", ends_after_it_was_asked)
    collector = ReplyCollector(ScriptedGrid((released, [whole])), print)
    assert collector.collect(["message 1"]) == []
    assert collector.collect([]) == [whole]


def test_a_call_that_was_overtaken_does_not_make_a_reply_unavailable(monkeypatch):
    released, (whole, unavailable) = threading.Event(), scripted_replies()
    monkeypatch.setattr(reply_collector, "PATIENCE_SECONDS", 0.01)
    collector = ReplyCollector(ScriptedGrid((released, [unavailable]), (released, [whole])), print)
    assert collector.collect(["message 1"]) == collector.collect(["message 1"]) == []
    released.set()
    for pull in collector._pulls:
        pull.join(20)
    assert collector.collect([]) == [whole]


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
