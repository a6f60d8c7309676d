"""Shards and problems that misbehave. They are sent to client processes, which import this module: keep it light."""

import os
import signal
import sys
import time

import numpy as np

from asyncfed.live.wire import Hello, encode


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
