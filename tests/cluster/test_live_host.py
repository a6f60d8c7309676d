"""What an actor does, called here as Ray would call it: from several threads."""

import os
import threading
import time

import numpy as np
import pytest
from tests.live.mischief import MischievousProblem, fail

from asyncfed.cluster.live_actors import SharedArrays, read_frame
from asyncfed.cluster.live_host import INLINE_BYTES, ClientHost, ClientStart
from asyncfed.cluster.live_shards import DescribedShards, GivenShards, pickle_shards
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.live.local.client_program import Slowdown
from asyncfed.live.wire import Failed, Hello, Result, Task, WireError, decode, decode_arrays, encode
from asyncfed.runs.problem_source import DescribedProblem

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


def start_of(client, slowdown=Slowdown(), size=11, log=""):
    return ClientStart(client, np.zeros(size), slowdown, (), False, log)


def task(ticket, params, key=5):
    return b"".join(encode(Task("s", ticket, 0, WORK, key, "<f8"), {"model": params}))


def described(experiment, fingerprint=None):
    fingerprint = fingerprint or experiment.problem().fingerprint()
    return DescribedShards(DescribedProblem(experiment, os.getcwd(), fingerprint, ""))


def message_of(frame, most=10**6):
    return read_frame(frame, most)


def test_clients_of_a_process_train_as_the_problem_does(small):
    experiment, problem = small(), small().problem()
    host = ClientHost(described(experiment), (1, 3))
    params = np.arange(11.0) / 10
    for client in (1, 3):
        assert message_of(host.prepare(start_of(client)))[0] == Hello(client)
        result, body = message_of(host.work(client, task(client, params)))
        assert isinstance(result, Result)
        assert result.num_examples == problem.num_examples[client]
        trained = decode_arrays(result, body)["model"]
        assert trained.tobytes() == problem.local_train(params, client, WORK, 5).tobytes()
        assert trained.flags.writeable


def test_large_models_are_answered_beside_the_header(small):
    from asyncfed.data import PaperRegression

    experiment = small(data=PaperRegression(num_samples=32, num_features=INLINE_BYTES // 8))
    problem = experiment.problem()
    host = ClientHost(described(experiment), (0,))
    host.prepare(start_of(0, size=problem.num_params))
    params = np.zeros(problem.num_params)
    params.flags.writeable = False  # as the object store gives it
    answer = host.work(0, b"".join(encode(Task("s", 0, 0, WORK, 5, "<f8"))), params)
    assert isinstance(answer, list)
    result, body = message_of(answer)
    assert decode_arrays(result, body)["model"].tobytes() == problem.local_train(params, 0, WORK, 5).tobytes()


def test_a_node_with_other_data_does_not_begin(small, tmp_path):
    log = tmp_path / "client.log"
    host = ClientHost(described(small(), "0" * 64), (0,))
    answer, _ = message_of(host.prepare(start_of(0, log=str(log))))
    assert answer == Failed(-1, "ConfigError")
    assert "Put the same files at the same paths" in log.read_text()


def test_what_a_client_s_code_raises_is_in_its_own_log_and_not_in_the_answer(small, tmp_path):
    log = tmp_path / "client.log"
    problem = MischievousProblem(small().problem(), 2, fail, at=2)
    host = ClientHost(pickled(problem, (2,)), (2,))
    host.prepare(start_of(2, log=str(log)))
    frame = host.work(2, task(7, np.zeros(11)))
    assert message_of(frame)[0] == Failed(7, "ValueError")
    assert b"patients" not in frame
    assert "patients.csv" in log.read_text()
    host.prepare(start_of(2))  # it begins anew, with its data anew, and the mischief is one training away again
    assert message_of(host.work(2, task(8, np.zeros(11))))[0] == Failed(8, "ValueError")


def test_a_cancelled_ticket_is_dropped_before_it_begins_and_while_it_only_waits(small):
    host = ClientHost(described(small()), (0, 1))
    host.prepare(start_of(0, Slowdown(1.0, 60.0)))
    host.prepare(start_of(1))
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(host.work(0, task(3, np.zeros(11)))))
    waiting.start()
    time.sleep(0.05)
    assert isinstance(message_of(host.work(1, task(4, np.zeros(11))))[0], Result)  # the others train meanwhile
    host.cancel(0, 3)
    waiting.join(10)
    assert answers == [b""]
    host.cancel(0, 5)
    assert host.work(0, task(5, np.zeros(11))) == b""


def pickled(problem, clients, most=10**6):
    import pickle

    return pickle_shards(problem, clients, most, pickle.dumps)


def test_data_given_in_memory_are_sent_up_to_a_limit(small):
    problem = small().problem()
    source = pickled(problem, (1, 2))
    assert isinstance(source, GivenShards)
    assert sorted(source.pickled) == [1, 2]
    with pytest.raises(ConfigError, match=r"client 1's part of it has .* bytes; at most 10 are sent"):
        pickled(problem, (1,), 10)


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ("text", "answered with a str"),
        ([], "answered with a list"),
        (b"XYZ" + bytes(13), "begins with"),
        (b"".join(encode(Hello(1)))[:20], "no valid message"),
        ([b"".join(encode(Hello(1))), np.zeros(3)], "no array of bytes"),
        ([b"".join(encode(Hello(1))), np.zeros(3, np.uint8)], "the body has 3 bytes; its prefix says 0"),
        (b"".join(encode(Result("s", 0, 0.0, 8, "<f8"), {"model": np.zeros(200)})), "at most 1000 are read"),
    ],
)
def test_an_answer_that_is_no_message_is_refused(answer, complaint):
    with pytest.raises(WireError, match=complaint):
        read_frame(answer, 1000)


def test_what_is_sent_is_what_the_wire_format_says(small):
    host = ClientHost(described(small()), (0,))
    assert decode(host.prepare(start_of(0)), 0)[0] == Hello(0)


def test_an_array_is_put_once_for_as_long_as_it_is_somebody_s(monkeypatch):
    import ray

    put = []
    monkeypatch.setattr(ray, "put", lambda array: put.append(array.copy()) or len(put))
    shared, first = SharedArrays(), np.zeros(3)
    assert [shared.put(first), shared.put(first)] == [1, 1]
    second = np.zeros(3)
    assert shared.put(second) == 2
    del first, second
    assert not shared._references
