"""Shards and problems that misbehave. They are sent to client processes, which import this module: keep it light."""

import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress

import numpy as np

from asyncfed.live.wire import Hello, Result, encode


class SpyingProblem:
    """A problem that notes which shards were sent."""

    def __init__(self, problem):
        self._problem, self.shards_sent = problem, []

    def __getattr__(self, name):
        return getattr(self._problem, name)

    def shard(self, client):
        self.shards_sent.append(client)
        return self._problem.shard(client)


class MischievousShard:
    """A shard that does something bad at a given training, once per file. The first training is the warm-up."""

    def __init__(self, shard, mischief, at, marker):
        self._shard, self._mischief, self._at, self._marker, self._count = shard, mischief, at, marker, 0

    @property
    def num_examples(self):
        return self._shard.num_examples

    def train(self, params, work, key, **more):
        self._count += 1
        if self._count == self._at and (self._marker is None or not self._marker.exists()):
            if self._marker is not None:
                self._marker.touch()
            return self._mischief(self, params)
        return self._shard.train(params, work, key, **more)


class MischievousProblem(SpyingProblem):
    """A problem one client of which has a mischievous shard."""

    def __init__(self, problem, client, mischief, marker=None, at=3):
        super().__init__(problem)
        self._how = (client, mischief, at, marker)

    def shard(self, client):
        shard = super().shard(client)
        culprit, mischief, at, marker = self._how
        return MischievousShard(shard, mischief, at, marker) if client == culprit else shard


def kill_self(shard, params):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(shard, params):
    raise ValueError("row 7 of /home/ann/patients.csv holds 61.5")


def hang(shard, params):
    time.sleep(60)


def hang_always(shard, params):
    shard._at += 1
    time.sleep(60)


def say_hello_again(shard, params):
    """A thousand times, in the middle of a training."""
    return _say_hello(shard, params)


def say_hello_at_once(shard, params):
    """In the warm-up: before the run begins, and before its own first hello."""
    return _say_hello(shard, params)


def _say_hello(shard, params):
    frame = sys._getframe()
    while "connection" not in frame.f_locals:  # that of the process, which a shard is not given
        frame = frame.f_back
    for _ in range(1000):
        for piece in encode(Hello(1)):
            frame.f_locals["connection"].sendall(piece)
    return np.array(params)


def poison(shard, params):
    shard._at += 1  # again and again
    return np.full_like(params, np.nan)


def oversize(shard, params):
    return np.zeros(10 * params.size)


def local_of_process(name):
    """A local variable of the client's program, which a shard is not given."""
    frame = sys._getframe()
    while name not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals[name]


def place_result(shard, params, ticket=None, body=False, **changes):
    """Say that a result lies in the slot."""
    task, connection = local_of_process("task"), local_of_process("connection")
    ticket = task.ticket if ticket is None else ticket
    result = Result(task.session, ticket, 0.0, shard.num_examples, task.dtype, **changes)
    for piece in encode(result, {"model": params} if body else None):
        connection.sendall(piece)
    return shard._shard.train(params, local_of_process("work"), 1)


def place_too_much(shard, params):
    return place_result(shard, params, placed=2**40)


def place_one_byte_too_many(shard, params):
    return place_result(shard, params, placed=params.nbytes + 1)


def place_too_little(shard, params):
    return place_result(shard, params, placed=params.nbytes - params.itemsize)


def place_nothing(shard, params):
    return place_result(shard, params, placed=0)


def place_less_than_nothing(shard, params):
    return place_result(shard, params, placed=-8)


def place_and_send(shard, params):
    return place_result(shard, params, placed=params.nbytes, body=True)


def place_for_another_ticket(shard, params):
    return place_result(shard, params, placed=params.nbytes, ticket=10**6)


def place_where_nothing_is_shared(shard, params):
    return place_result(shard, params, placed=params.nbytes)


def die_while_writing(shard, params):
    slot = local_of_process("outbox")._slot
    slot[: params.nbytes // 2] = 255
    os.kill(os.getpid(), signal.SIGKILL)


def scribble(shard, params):
    """From now on write what is not a number to the slot, again and again, also after results were sent."""
    slot = local_of_process("outbox")._slot

    def write():
        while True:
            slot[:] = 255
            time.sleep(0.0001)

    threading.Thread(target=write, daemon=True).start()
    return params + 1.0


def write_to_models(shard, params):
    """Try what a process can try to make the models its own, and note what the system says."""
    libc, outcome = ctypes.CDLL(None, use_errno=True), []
    with open("/proc/self/maps") as maps:
        [line] = [line for line in maps if "asyncfed models" in line]
    first, last = (int(number, 16) for number in line.split()[0].split("-"))
    outcome.append(libc.mprotect(ctypes.c_void_p(first), ctypes.c_size_t(last - first), 3))
    outcome.append(sum("memfd" in file for file in open_files()))
    shard._marker.write_text(repr(outcome))
    return shard._shard.train(params, local_of_process("work"), 1)


def open_files():
    found = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the folder itself
            found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return found
