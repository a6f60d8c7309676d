"""What a client process does with the messages it is sent."""

import pickle
import signal
import socket
import threading
import time

import numpy as np
import pytest

from asyncfed.core.types import Work
from asyncfed.live.local.client_program import ClientSetup, Slowdown, run_client
from asyncfed.live.wire import (
    PREFIX_BYTES,
    Cancelled,
    Hello,
    Result,
    Task,
    decode_array,
    decode_header,
    decode_prefix,
    encode,
)

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


def test_a_shard_holds_its_own_rows_only_and_trains_as_the_whole(small):
    problem = small().problem()
    for client in range(problem.num_clients):
        sent = pickle.dumps(problem.shard(client))
        shard = pickle.loads(sent)
        own, _ = problem._rows_of(client)
        for other in range(problem.num_clients):
            rows, _ = problem._rows_of(other)
            assert (rows[0].tobytes() in sent) == (other == client)
        assert shard.rows.x.base is None
        assert np.array_equal(shard.rows.x, own)
        start = np.linspace(-1, 1, problem.num_params)
        assert shard.train(start, WORK, 9).tobytes() == problem.local_train(start, client, WORK, 9).tobytes()


@pytest.fixture
def client_at_work(small, monkeypatch):
    """A client in a thread, and our end of its connection."""
    monkeypatch.setattr(signal, "signal", lambda *how: None)  # this is not a process of its own

    def start(slowdown=Slowdown()):
        ours, theirs = socket.socketpair()
        setup = ClientSetup(2, small().problem().shard(2), np.zeros(11), slowdown)
        client = threading.Thread(target=run_client, args=(theirs, setup), daemon=True)
        client.start()
        assert read_message(ours) == (Hello(2), b"")
        return client, ours

    return start


def send(connection, message, arrays=None):
    for piece in encode(message, arrays):
        connection.sendall(piece)


def test_a_cancelled_client_stops_waiting_and_takes_its_next_task(client_at_work):
    client, ours = client_at_work(Slowdown(factor=1.0, min_seconds=0.3))
    began = time.monotonic()
    model = {"model": np.zeros(11)}
    for ticket in (7, 8):  # it waits with the result of 7; 8 is cancelled before it is begun
        send(ours, Task("s", ticket, 0, WORK, 5, "<f8"), model)
        send(ours, Cancelled(ticket))
    send(ours, Task("s", 9, 0, WORK, 5, "<f8"), model)
    result, _ = read_message(ours)
    assert result.ticket == 9
    assert 0.3 <= time.monotonic() - began < 0.3 + 0.25
    ours.close()
    client.join(5.0)
    assert not client.is_alive()


def test_a_waiting_client_notices_that_its_server_is_gone(client_at_work):
    client, ours = client_at_work(Slowdown(factor=1.0, min_seconds=30.0))
    send(ours, Task("s", 7, 0, WORK, 5, "<f8"), {"model": np.zeros(11)})
    ours.close()
    client.join(5.0)
    assert not client.is_alive()


def test_a_client_answers_tasks_until_the_connection_ends(small, client_at_work):
    problem, zeros = small().problem(), np.zeros(11)
    client, ours = client_at_work()
    send(ours, Task("s", 7, 0, WORK, 5, "<f8"), {"model": zeros})
    result, body = read_message(ours)
    assert isinstance(result, Result)
    assert (result.session, result.ticket, result.num_examples) == ("s", 7, 8)
    assert decode_array("<f8", body).tobytes() == problem.local_train(zeros, 2, WORK, 5).tobytes()
    ours.close()
    client.join(5.0)
    assert not client.is_alive()


def read_message(connection):
    def exactly(count):
        return connection.recv(count, socket.MSG_WAITALL)

    header, body = decode_prefix(exactly(PREFIX_BYTES), 10_000)
    return decode_header(exactly(header)), exactly(body) if body else b""


@pytest.mark.parametrize(
    ("slowdown", "worked", "sleeps"),
    [(Slowdown(), 0.3, 0.0), (Slowdown(factor=3.0), 0.5, 1.0), (Slowdown(min_seconds=2.0), 0.5, 1.5)],
)
def test_a_slowed_down_client_sleeps_for_the_rest_of_its_time(slowdown, worked, sleeps):
    assert slowdown.seconds_to_sleep(worked) == pytest.approx(sleeps)
