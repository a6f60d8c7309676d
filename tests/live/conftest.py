"""A live run without processes: clients are trained here, in whatever order and at whatever time a test asks for."""

import itertools
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from asyncfed.core.record import replace
from asyncfed.engine.replay import replay
from asyncfed.live.checks import Limits
from asyncfed.live.client_task import work_on
from asyncfed.live.session import CheckpointPolicy, LiveSession
from asyncfed.live.wire import Cancelled, decode, decode_arrays, encode
from asyncfed.store.events import recorded_merges
from asyncfed.store.journal import Journal
from asyncfed.store.schema import KIND_NAMES
from asyncfed.uplinks.chain import SKIPPED_BYTES
from asyncfed.uplinks.client_memory import ClientMemory

# Client processes are sent shards that tests define, and must be able to import them.
sys.path.insert(0, str(Path(__file__).parents[2]))

HEADER = {"num_clients": 4, "verdict": "interrupted", "reason": "", "own_delays": False, "asyncfed": "test"}


class Harness:
    """A session with clients that a test makes answer. `held` are the tickets that clients hold, by number.

    All that is sent goes through the wire format; `bytes_down` and `bytes_up` count the bodies.
    """

    names = (os.urandom(8).hex() for _ in itertools.count())  # not twice, also if a process is forked

    def __init__(self, experiment, path, limits=None, checkpoints=None):
        self.problem = experiment.problem()
        self.plan = experiment.plan(1)
        self.path, self.limits, self.checkpoints = (
            path,
            limits or Limits(),
            checkpoints or CheckpointPolicy(seconds=1e9),
        )
        self.now, self.held, self.tasks = 0.0, {}, {}
        self.memories = [ClientMemory() for _ in range(experiment.num_clients)]
        self.bytes_down = self.bytes_up = 0
        self.answered = {}
        self.journal = Journal.create(path, {**HEADER, "problem": self.problem.fingerprint()})
        self.open()
        self.session.start()

    def open(self):
        how = {"limits": self.limits, "checkpoints": self.checkpoints}
        self.session = LiveSession(self.problem, self.plan, self.journal, name=next(self.names), **how)

    def crash(self):
        """The server is gone, with all that was not committed, and another one takes over."""
        self.journal.close()
        self.journal = Journal.open(self.path, write=True)
        self.open()
        self.session.resume()
        self.held, self.tasks = {}, {}
        self.now = self.session.state.elapsed

    def commit(self):
        dispatches = self.session.commit(self.now)
        self.held |= {dispatch.ticket: dispatch for dispatch in dispatches}
        self.tasks |= {dispatch.ticket: self.session.make_task(dispatch) for dispatch in dispatches}
        for dispatch in dispatches:
            self.bytes_down += self.send(*self.tasks[dispatch.ticket])[2]
        for dispatch in self.session.take_cancelled():
            self.send(Cancelled(dispatch.ticket), {})
            self.held.pop(dispatch.ticket, None)
        return dispatches

    @staticmethod
    def send(message, arrays):
        """What arrives of a message, and how many bytes of numbers that took."""
        arrived, body = decode(b"".join(encode(message, arrays)), 10**6)
        return arrived, {} if isinstance(arrived, Cancelled) else decode_arrays(arrived, body), len(body)

    def result(self, ticket, /, **changes):
        """What the client that holds this ticket sends, if it is honest: (result, arrays). `changes` are its lies."""
        client = self.held[ticket].client
        if ticket not in self.answered:  # a task is worked on once: it changes what the client remembers
            task, arrays, _ = self.send(*self.tasks[ticket])
            first = lambda: self.session.first_model(client)  # noqa: E731
            shard, memory = self.problem.shard(client), self.memories[client]
            self.answered[ticket] = work_on(shard, task, arrays, memory, lambda: 0.0, first_model=first)
        result, sent = self.answered[ticket]
        sent = changes.pop("arrays", sent)
        if "params" in changes:
            sent = {"model": changes.pop("params")}
        return replace(result, **changes), sent

    def answer(self, ticket, /, **changes):
        """The client answers a second after whatever happened last."""
        self.now += 1.0
        result, arrays = self.result(ticket, **changes)
        if not changes:
            result, arrays, length = self.send(result, arrays)
            self.bytes_up += length or SKIPPED_BYTES
        outcome = self.session.accept(self.held[ticket].client, result, arrays, self.now)
        self.held.pop(ticket)
        return outcome

    def play(self, seed=0):
        """Honest clients answer in a random order until the run is over."""
        chance = np.random.default_rng(seed)
        self.commit()
        while not self.session.finished:
            self.answer(int(chance.choice(list(self.held))))
            self.commit()

    def replayed(self):
        """The model of a simulator that trains every client of the journal again, and its journal's digest."""
        again = Journal.create(None, {})
        for _ in replay(
            self.problem, self.plan, self.journal.event_rows(), again, released=self.journal.released_message
        ):
            pass
        return again.checkpoint()[1]["params"], again.sha256()

    def check_whole(self):
        """Every version is there once, no ticket was merged twice, and a replay comes to the same."""
        merges = self.events("merge")
        assert [row.version for row in merges] == list(range(1, len(merges) + 1))
        recorded = recorded_merges(self.journal.event_rows())
        tickets = [update.ticket for merge in recorded for update in merge.updates]
        assert len(tickets) == len(set(tickets)) == self.session.state.updates
        params, digest = self.replayed()
        assert params.tobytes() == self.session.state.params.tobytes()
        assert digest == self.journal.sha256()

    def events(self, *kinds):
        return [event for event in self.journal.event_rows() if KIND_NAMES[event.kind] in kinds]


@pytest.fixture
def live_run(tmp_path, small):
    numbers = itertools.count()

    def make(limits=None, checkpoints=None, **how):
        return Harness(small(**how), tmp_path / f"live-{next(numbers)}.sqlite", limits, checkpoints)

    return make
