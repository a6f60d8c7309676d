"""A client's process as the server sees it, with an actor that a test makes answer and die."""

import asyncio
from concurrent.futures import Future

import numpy as np
import pytest
import ray

from asyncfed.cluster.connection import Node
from asyncfed.cluster.live_actors import ActorClient, ActorProcess, SharedArrays
from asyncfed.cluster.live_host import ClientStart
from asyncfed.cluster.live_placement import ProcessPlan
from asyncfed.core.types import Dispatch, Work
from asyncfed.live.local.client_program import Slowdown
from asyncfed.live.wire import Hello, Task, encode


class Call:
    """A method of an actor; `answers` are the calls that have not been answered."""

    def __init__(self, answer=None):
        self.answers, self._answer = [], answer

    def options(self, **_):
        return self

    def remote(self, *arguments):
        future = Future()
        if self._answer is not None:
            future.set_result(self._answer(*arguments))
        self.answers.append(future)
        return Reference(future)


class Reference:
    def __init__(self, future):
        self._future = future

    def future(self):
        return self._future

    def __await__(self):
        return asyncio.wrap_future(self._future).__await__()


class Actor:
    def __init__(self):
        self.prepare = Call(lambda start: b"".join(encode(Hello(start.client))))
        self.work, self.cancel, self.wait_for_end = Call(), Call(), Call()

    def die(self):
        for call in (self.work, self.wait_for_end):
            for future in call.answers:
                if not future.done():
                    future.set_exception(ray.exceptions.ActorDiedError())


class Session:
    def is_in_flight(self, ticket):
        return True

    def make_task(self, dispatch):
        return Task("s", dispatch.ticket, 0, dispatch.work, 5, "<f8"), {"model": np.zeros(3)}


class Nodes:
    def nodes(self):
        return [Node("a", "10.0.0.1", 1.0)]

    def pinned_to(self, node):
        return node


@pytest.fixture
def actors(monkeypatch):
    """The actors that were started, oldest first; those that were killed have `killed`."""
    started = []

    class Started:
        def options(self, **_):
            return self

        def remote(self, *_):
            started.append(Actor())
            return started[-1]

    def kill(actor):
        actor.killed = True
        actor.die()

    monkeypatch.setattr(ray, "remote", lambda **_: lambda _: Started())
    monkeypatch.setattr(ray, "kill", kill)
    return started


def two_clients():
    how = {"elsewhere": False, "seconds": 10.0}
    process = ActorProcess(Nodes(), ProcessPlan(0, (0, 1), None), None, SharedArrays(), **how)
    return [ActorClient(client, process) for client in (0, 1)]


async def open_client(client):
    connection = client.open(ClientStart(client.client, np.zeros(3), Slowdown(), (), False, ""), lambda: 1000)
    message, _ = await connection.next_message()
    assert message == Hello(client.client)
    client.ready = True
    return connection


def give(client, ticket):
    client.waiting.append(Dispatch(ticket, client.client, 0, Work()))
    client.send_next(Session())


def test_a_ticket_that_is_sent_to_a_process_which_has_just_ended_is_found_lost(actors):
    async def run():
        one, _ = two_clients()
        connection = await open_client(one)
        actors[0].die()
        await asyncio.sleep(0.01)
        give(one, 7)  # the loop has not read the end of the connection yet
        assert one.busy == 7
        with pytest.raises(ConnectionError):
            await connection.next_message()

    asyncio.run(run())


def test_clients_share_a_process_and_a_new_one_is_not_ended_by_who_was_in_the_old(actors):
    async def run():
        one, other = two_clients()
        first = await open_client(one)
        second = await open_client(other)
        assert len(actors) == 1
        give(one, 1)
        give(other, 2)
        actors[0].die()
        await asyncio.sleep(0.01)
        for connection in (first, second):
            with pytest.raises(ConnectionError):
                await connection.next_message()
        one.stop()
        again = await open_client(one)
        other.stop()  # its ticket was out, but in the process that is gone
        await open_client(other)
        assert len(actors) == 2
        assert not again.ended
        other.stop()
        assert not again.ended  # it had nothing to do, so the process need not end
        one.stop()
        assert actors[1].killed

    asyncio.run(run())


def test_a_process_is_ended_for_who_hangs_in_it(actors):
    async def run():
        one, other = two_clients()
        await open_client(one)
        second = await open_client(other)
        give(one, 1)
        one.stop()
        assert actors[0].killed
        with pytest.raises(ConnectionError):
            await second.next_message()

    asyncio.run(run())


def test_an_empty_answer_says_nothing(actors):
    async def run():
        one, _ = two_clients()
        connection = await open_client(one)
        give(one, 1)
        one.cancel(1)
        actors[0].work.answers[0].set_result(b"")
        give(one, 2)
        one.stop()

        await asyncio.sleep(0.01)
        with pytest.raises(ConnectionError):
            await connection.next_message()

    asyncio.run(run())
