"""A live run without processes: clients are trained here, in whatever order and at whatever time a test asks for."""

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from asyncfed.engine.replay import replay
from asyncfed.live.checks import Limits, Reply
from asyncfed.live.session import LiveSession, Saving
from asyncfed.store.journal import Journal
from asyncfed.store.schema import KIND_NAMES

# Client processes are sent shards that tests define, and must be able to import them.
sys.path.insert(0, str(Path(__file__).parents[2]))

HEADER = {"num_clients": 4, "verdict": "interrupted", "reason": "", "own_delays": False, "asyncfed": "test"}


class Table:
    """A session and its clients around one table. `hands` are the assignments that clients hold, by ticket."""

    names = map(str, itertools.count())

    def __init__(self, experiment, path, limits=None, saving=None):
        self.problem = experiment.problem()
        self.plan = experiment.plan(1)
        self.path, self.limits, self.saving = path, limits or Limits(), saving or Saving(seconds=1e9)
        self.now, self.hands = 0.0, {}
        self.journal = Journal.create(path, {**HEADER, "problem": self.problem.fingerprint()})
        self.open()
        self.session.start()

    def open(self):
        how = {"limits": self.limits, "saving": self.saving}
        self.session = LiveSession(self.problem, self.plan, self.journal, name=next(self.names), **how)

    def crash(self):
        """The server is gone, with all that was not committed, and another one takes over."""
        self.journal.close()
        self.journal = Journal.open(self.path, write=True)
        self.open()
        self.session.resume()
        self.hands = {}
        self.now = self.session.state.elapsed

    def commit(self):
        assignments = self.session.commit(self.now)
        self.hands |= {a.ticket: a for a in assignments}
        return assignments

    def reply(self, ticket, /, **changes):
        """What the client that holds this ticket answers, if it is honest; `changes` are its lies."""
        task = self.hands[ticket]
        trained = self.problem.local_train(task.params, task.client, task.work, task.key)
        examples = int(self.problem.num_examples[task.client])
        honest = {
            "session": task.session,
            "ticket": ticket,
            "client": task.client,
            "params": trained,
            "duration": 0.0,
            "num_examples": examples,
        }
        return Reply(**{**honest, **changes})

    def answer(self, ticket, /, **changes):
        """The client answers a second after whatever happened last."""
        self.now += 1.0
        verdict = self.session.accept(self.reply(ticket, **changes), self.now)
        self.hands.pop(ticket)
        return verdict

    def play(self, seed=0):
        """Honest clients answer in a random order until the run is over."""
        chance = np.random.default_rng(seed)
        self.commit()
        while not self.session.finished:
            self.answer(int(chance.choice(list(self.hands))))
            self.commit()

    def replayed(self):
        """The model the simulator comes to, training every client of the journal again; and its journal's digest."""
        again = Journal.create(None, {})
        for _ in replay(self.problem, self.plan, self.journal.event_rows(), again):
            pass
        return again.checkpoint()[1]["params"], again.sha256()

    def check_whole(self):
        """Every version is there once, no ticket was merged twice, and a replay comes to the same."""
        merges = self.events("merge")
        assert [row[5] for row in merges] == list(range(1, len(merges) + 1))
        tickets = [t for row in merges for t in ([row[3]] if row[3] is not None else json.loads(row[8])["tickets"])]
        assert len(tickets) == len(set(tickets)) == self.session.state.updates
        params, digest = self.replayed()
        assert params.tobytes() == self.session.state.params.tobytes()
        assert digest == self.journal.sha256()

    def events(self, *kinds):
        return [row for row in self.journal.event_rows() if KIND_NAMES[row[2]] in kinds]


@pytest.fixture
def table(tmp_path, small):
    numbers = itertools.count()

    def make(limits=None, saving=None, **how):
        return Table(small(**how), tmp_path / f"live-{next(numbers)}.sqlite", limits, saving)

    return make
