"""A grid without a network: nodes are ClientApps that are called when a test says so."""

import itertools

import numpy as np
import pytest
from flwr.app import Context, Error, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

import asyncfed as af
from asyncfed.core.types import Budget, Work
from asyncfed.data import InOrder, PaperRegression
from asyncfed.flower.grid_driver import GridDriver
from asyncfed.flower.messages import pack_message, unpack_message
from asyncfed.flower.node_program import make_client_app
from asyncfed.flower.node_registry import NodeRegistry
from asyncfed.live.checks import Limits
from asyncfed.live.session import LiveSession
from asyncfed.live.wire import Result
from asyncfed.store.journal import Journal
from asyncfed.store.schema import KIND_NAMES
from asyncfed.strategies import AFL

FIRST_NODE = 100
TTL = 50.0


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/flower" in item.nodeid:
            item.add_marker(pytest.mark.flower)


class InterruptedPush(Exception):
    """Like the error of Flower's own when its SuperLink is restarted in the middle of a message."""


class FakeGrid(Grid):
    """`inboxes` holds what nodes have been sent, `sent` and `answers` all that ever went over the wire."""

    def __init__(self, experiment, clients):
        self.app = make_client_app(experiment)
        self.nodes, self.inboxes, self.waiting, self.states, self.settings = {}, {}, {}, {}, {}
        self.sent, self.answers, self.accepts = [], [], True
        self.broken_pushes = 0
        self._numbers = itertools.count()
        for client in clients:
            self.add(client)

    def add(self, client, node=None):
        node = FIRST_NODE + client if node is None else node
        self.nodes[node] = client
        self.inboxes.setdefault(node, [])
        return node

    # what the driver may use

    def get_node_ids(self):
        return list(self.nodes)

    def push_messages(self, messages):
        if self.broken_pushes:
            self.broken_pushes -= 1
            raise InterruptedPush("the push session may have expired")
        identities = []
        for message in messages:
            identity = f"message {next(self._numbers)}" if self.accepts else ""
            identities.append(identity)
            if self.accepts:
                message.metadata.__dict__["_message_id"] = identity
                self.inboxes[message.metadata.dst_node_id].append(message)
                self.sent.append(message)
        return identities

    def pull_messages(self, message_ids):
        return [self.waiting.pop(identity) for identity in list(message_ids) if identity in self.waiting]

    # what it must not

    def send_and_receive(self, messages, *, timeout=None):
        raise AssertionError("waits for the slowest")

    def set_run(self, run):
        raise NotImplementedError

    run = property(set_run)
    create_message = set_run

    # what a test makes nodes do

    def work(self, node, content=None, error=None):
        """The node answers the oldest message it has: as Flower does with its app, or with what the test gives."""
        message = self.inboxes[node].pop(0)
        if error is not None:
            reply = Message(Error(3, error), reply_to=message)
        elif content is not None:
            reply = Message(content, reply_to=message)
        else:
            reply = self.run_app(message, node)
        self.answers.append(reply)
        self.waiting[message.metadata.message_id] = reply
        return reply

    def run_app(self, message, node):
        """What Flower's process for a ClientApp does: an exception goes to the server with its class and its text."""
        state = self.states.setdefault(node, RecordDict())  # it lasts as long as the SuperNode
        settings = {"partition-id": self.nodes[node], **self.settings.get(node, {})}
        context = Context(1, node, settings, state, {})
        try:
            return self.app(message, context)
        except Exception as error:
            return Message(Error(2, f"{type(error)}:<'{error}'>"), reply_to=message)


class Federation:
    """A session, its driver and a fake grid. `now` is a second later at each step."""

    ttl = TTL

    def __init__(self, experiment, path, here, limits=None):
        self.experiment, self.path, self.limits, self.now = experiment, path, limits or Limits(ticket_seconds=TTL), 0.0
        self.grid, self.logged = FakeGrid(experiment, here), []
        self.names = map(str, itertools.count())
        self._open()
        self.driver.find_clients(0.0)
        self.all_work()
        here = self.driver.find_clients(0.5)
        self.absent = [c for c in range(experiment.num_clients) if c not in here]
        live = {"live": {"absent": self.absent}}
        header = {"asyncfed": "test", "experiment": af.experiment.to_plain(experiment), "own_delays": False, **live}
        header |= {"problem": experiment.problem().fingerprint(), "num_clients": experiment.num_clients}
        self.journal = Journal.create(path, {**header, "verdict": "interrupted", "reason": ""})
        self._attach()

    def _open(self):
        self.registry = NodeRegistry(self.experiment, None, None)
        how = {"check": self.registry.check, "log": self.logged.append}
        self.driver = GridDriver(self.grid, **how)

    def _attach(self):
        plan = af.core.record.replace(self.experiment.plan(1), absent=tuple(self.absent))
        name = f"session {next(self.names)}"
        self.session = LiveSession(self.registry.problem(), plan, self.journal, name=name, limits=self.limits)
        self.session.resume()
        self.driver.attach(self.session, TTL)

    def crash(self):
        """The server is gone; another one takes over. Nodes and what they were sent stay."""
        self.journal.close()
        self.journal = Journal.open(self.path, write=True)
        self._open()
        self._attach()
        self.now = self.session.state.elapsed

    def step(self, seconds=1.0, return_seconds=1e9):
        self.now += seconds
        self.driver.step(self.now, return_seconds)

    def node_of(self, client):
        return self.driver.nodes.node_of[client]

    def all_work(self):
        for node in self.grid.inboxes:
            while self.grid.inboxes[node]:
                self.grid.work(node)

    def finish(self, seed=0):
        """Honest nodes answer in a random order until the run is over."""
        chance = np.random.default_rng(seed)
        while not self.session.finished:
            self.step()
            busy = [node for node in self.grid.nodes if self.grid.inboxes[node]]
            if busy:
                self.grid.work(int(chance.choice(busy)))

    def task(self, client):
        """The oldest task this client's node has."""
        return self.grid.inboxes[self.node_of(client)][0]

    def honest(self, client):
        """What the client would answer to its oldest task."""
        node = self.node_of(client)
        context = Context(1, node, {"partition-id": client}, RecordDict(), {})
        return unpack_message(self.grid.app(self.task(client), context).content, Result, 10_000)

    def lie(self, client, content=None, params=None, **changes):
        """The client answers its oldest task with something else than it should."""
        result, arrays = self.honest(client)
        if content is None:
            arrays = arrays if params is None else {"model": params}
            content = pack_message(af.core.record.replace(result, **changes), arrays)
        self.grid.work(self.node_of(client), content)
        self.step()

    def events(self, *kinds):
        return [event for event in self.journal.event_rows() if KIND_NAMES[event.kind] in kinds]


@pytest.fixture(autouse=True)
def _a_task(monkeypatch):
    """Messages are made by a task of Flower's, which has a number."""
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


@pytest.fixture
def experiment():
    return af.Experiment(
        name="flower",
        num_clients=3,
        data=PaperRegression(num_samples=48),
        split=InOrder(),
        strategy=AFL(concurrency=3, aggregate="delta_mean", work=Work(epochs=1, batch_size=4, learning_rate=0.01)),
        budget=Budget(rounds=4),
    )


@pytest.fixture
def federation(experiment, tmp_path):
    def make(here=(0, 1, 2), limits=None, **changes):
        return Federation(af.core.record.replace(experiment, **changes), tmp_path / "run.sqlite", here, limits)

    return make
