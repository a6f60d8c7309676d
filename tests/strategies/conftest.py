"""A server and its vectors driven by hand: one parameter, models chosen by the test, with and without a clock."""

from heapq import heappop, heappush

import numpy as np
import pytest

from asyncfed.core.server import Server
from asyncfed.core.types import Cancel, Dispatch, Drop, Merge, Report, Wake, Work
from asyncfed.rules import Arrival, RuleRun, Vectors
from asyncfed.rules.protocol import rule_of


class HandRun:
    """Clients are named by number: with as many tickets as clients each has one, so nothing is left to chance."""

    def __init__(self, strategy, num_examples=(1, 1, 1), start=0.0, seed=0):
        self.server = Server(strategy, list(num_examples), seed)
        self.vectors = Vectors(np.array([start], dtype=np.float64))
        self.merges = []
        rule = rule_of(strategy)
        self.rule = None if rule is None else RuleRun(rule, self.vectors.params, len(num_examples))
        self._version = 0
        self._known = {}  # with a rule, what has to be known of a ticket when it is merged
        self._carry_out(self.server.start())

    @property
    def x(self):
        """The server's model."""
        return self.vectors.params.item()

    def correction_of(self, client):
        """What the rule sent the client along with the model."""
        return self.rule.sent_with(self.ticket_of(client))["correction"].item()

    def ticket_of(self, client):
        """The client's only ticket."""
        (ticket,) = [t for t, d in self.server.outstanding.items() if d.client == client]
        return ticket

    def start_of(self, client):
        """The model the client was handed."""
        return self.vectors.starts[self.ticket_of(client)].item()

    def arrive(self, client, model, duration=1.0, steps=1):
        """(staleness at arrival, what was decided about reports, the server's model afterwards)."""
        return self.report(self.ticket_of(client), model, duration, steps)

    def report(self, ticket, model, duration=1.0, steps=1):
        dispatch = self.server.outstanding[ticket]
        self._known[ticket] = dispatch, steps
        staleness = self.server.version - dispatch.base_version
        self.vectors.trained[ticket] = np.array([model], dtype=np.float64)
        if dispatch.work.start == "own":
            self.vectors.own[dispatch.client] = self.vectors.trained[ticket]
        examples = self.server.num_examples(dispatch.client)
        outputs = self.server.receive(Report(ticket, dispatch.client, 0.0, duration, examples))
        return staleness, self._carry_out(outputs), self.x

    def lose(self, client):
        ticket = self.ticket_of(client)
        outputs = self.server.lose(ticket)
        self.vectors.forget(ticket)
        return self._carry_out(outputs), self.x

    def leave(self, client):
        gone = [t for t, d in self.server.outstanding.items() if d.client == client]
        outputs = self.server.leave(client)
        for ticket in gone:
            self.vectors.forget(ticket)
        return self._carry_out(outputs), self.x

    def join(self, client, num_examples=1):
        return self._carry_out(self.server.join(client, num_examples)), self.x

    def _merge(self, merge):
        if self.rule is None:
            self.vectors.merge(merge)
            return
        arrivals = [self._arrival(t, w) for t, w in zip(merge.tickets, merge.weights, strict=True)]
        params, _ = self.rule.step(self.vectors.params, arrivals, merge, 0)
        for ticket in merge.tickets:
            self.vectors.forget(ticket)
            self.rule.forget(ticket)
        self.vectors.params, self._version = params, self._version + 1

    def _arrival(self, ticket, weight):
        (dispatch, steps), vectors = self._known.pop(ticket), self.vectors
        staleness, examples = self._version - dispatch.base_version, self.server.num_examples(dispatch.client)
        models, sent = (vectors.starts[ticket], vectors.trained[ticket]), self.rule.sent_with(ticket)
        return Arrival(ticket, dispatch.client, weight, staleness, dispatch.work, steps, examples, *models, sent)

    def _carry_out(self, outputs):
        said = []
        for output in outputs:
            if isinstance(output, Dispatch):
                own = self.vectors.own.get(output.client, np.zeros(1)) if output.work.start == "own" else None
                self.vectors.dispatch(output, own)
                if self.rule is not None:
                    self.rule.send(output.ticket, output.client)
            elif isinstance(output, Merge):
                said.append("merge")
                self.merges.append(output)
                self._merge(output)
            elif isinstance(output, Drop):
                said.append("drop")
                self.vectors.forget(output.ticket)
            elif isinstance(output, Cancel):
                said.append("cancel")
                self.vectors.forget(output.ticket)
        return " ".join(said) or "hold"


@pytest.fixture
def hand_run():
    return HandRun


class RuledHandRun:
    """As `HandRun`, but with any number of parameters, changes chosen by the test, and a rule that measures them."""

    def __init__(self, strategy, num_examples=(1, 1, 1), start=(0.0,)):
        self.server = Server(strategy, list(num_examples), 0)
        self.x = np.array(start, float)
        self.rule = RuleRun(strategy.rule, self.x, len(num_examples))
        self.starts, self.arrivals, self.merges = {}, {}, []
        self._carry_out(self.server.start())

    def dispatch_of(self, client):
        """The client's only ticket."""
        (dispatch,) = [d for d in self.server.outstanding.values() if d.client == client]
        return dispatch

    def arrive(self, client, change):
        """What was measured, what was decided about reports, and the server's model afterwards."""
        dispatch = self.dispatch_of(client)
        examples, start = self.server.num_examples(client), self.starts[dispatch.ticket]
        staleness = self.server.version - dispatch.base_version
        steps, model = dispatch.work.count_steps(examples), start + np.array(change, float)
        arrival = Arrival(dispatch.ticket, client, 0.0, staleness, dispatch.work, steps, examples, start, model)
        measured = self.rule.measure(self.x, arrival, None)
        self.arrivals[dispatch.ticket] = arrival
        outputs = self.server.receive(Report(dispatch.ticket, client, 0.0, 1.0, examples, measured))
        return measured, self._carry_out(outputs), self.x.tolist()

    def lose(self, client):
        return self._carry_out(self.server.lose(self.dispatch_of(client).ticket)), self.x.tolist()

    def _carry_out(self, outputs):
        said = []
        for output in outputs:
            if isinstance(output, Dispatch):
                self.starts[output.ticket] = self.x
            elif isinstance(output, Merge):
                said.append("merge")
                self.merges.append(output)
                arrivals = [
                    self.arrivals.pop(t)._replace(weight=w) for t, w in zip(output.tickets, output.weights, strict=True)
                ]
                self.x, _ = self.rule.step(self.x, arrivals, output, 0)
            elif isinstance(output, Cancel):
                said.append("cancel")
        return " ".join(said) or "hold"


@pytest.fixture
def ruled_hand_run():
    return RuledHandRun


class ClockRun:
    """A server, its rule and one parameter in virtual time: client c takes `seconds[c]` and adds `moves[c]`.

    Arrivals come before timers of the same moment. `log` is what was decided: (time, kind, clients, x afterwards).
    """

    def __init__(self, strategy, seconds, moves=None, num_examples=None, start=0.0):
        self.seconds, self.moves = dict(enumerate(seconds)), dict(enumerate(moves or [0.0] * len(seconds)))
        self.server = Server(strategy, list(num_examples or [1] * len(seconds)))
        self.vectors = Vectors(np.array([start]))
        rule = rule_of(strategy)
        self.rule = None if rule is None else RuleRun(rule, self.vectors.params, len(seconds))
        self.now, self.log, self.merges, self.cancelled = 0.0, [], [], set()
        self._heap, self._sent = [], {}
        self._carry_out(self.server.start())

    @property
    def x(self):
        """The server's model."""
        return self.vectors.params.item()

    def run(self, until):
        """Let everything happen up to and including this time."""
        while self._heap and self._heap[0][0] <= until and self.server.stopped is None:
            self.now, is_timer, number = heappop(self._heap)
            if is_timer:
                self._carry_out(self.server.wake(number, self.now))
            elif number in self.server.outstanding:
                dispatch = self.server.outstanding[number]
                self.vectors.trained[number] = self.vectors.starts[number] + self.moves[dispatch.client]
                examples, duration = self.server.num_examples(dispatch.client), self.now - self._sent[number]
                self._carry_out(self.server.receive(Report(number, dispatch.client, self.now, duration, examples)))
        self.now = until
        return self

    def lose(self, client):
        """The client's ticket is lost now."""
        [ticket] = [t for t, d in self.server.outstanding.items() if d.client == client]
        self._carry_out(self.server.lose(ticket))
        self.vectors.forget(ticket)

    def leave(self, client):
        """The client leaves now."""
        gone = [t for t, d in self.server.outstanding.items() if d.client == client]
        outputs = self.server.leave(client)
        for ticket in gone:
            self.vectors.forget(ticket)
        self._carry_out(outputs)

    def join(self, client, seconds, move=0.0, num_examples=1):
        """The client comes (back) now."""
        self.seconds[client], self.moves[client] = seconds, move
        self._carry_out(self.server.join(client, num_examples))

    def at_work(self):
        """Who holds a ticket."""
        return sorted(dispatch.client for dispatch in self.server.outstanding.values())

    def _carry_out(self, outputs):
        for output in outputs:
            if isinstance(output, Dispatch):
                self.vectors.dispatch(output)
                self._sent[output.ticket] = self.now
                heappush(self._heap, (self.now + self.seconds[output.client], False, output.ticket))
            elif isinstance(output, Wake):
                heappush(self._heap, (self.now + output.after, True, output.number))
            elif isinstance(output, Merge):
                clients = [self.vectors.client_of[ticket] for ticket in output.tickets]
                self._merge(output)
                self.merges.append(output)
                self.log.append((self.now, "merge", clients, self.x))
            elif isinstance(output, Cancel | Drop):
                kind = "cancel" if isinstance(output, Cancel) else "drop"
                self.cancelled.add(output.ticket)
                self.log.append((self.now, kind, [self.vectors.client_of[output.ticket]], self.x))
                self.vectors.forget(output.ticket)

    def _merge(self, merge):
        if self.rule is None:
            self.vectors.merge(merge)
            return
        arrivals = []
        for ticket, weight in zip(merge.tickets, merge.weights, strict=True):
            client = self.vectors.client_of.pop(ticket)
            start, model = self.vectors.starts.pop(ticket), self.vectors.trained.pop(ticket)
            examples = self.server.num_examples(client)
            arrivals.append(Arrival(ticket, client, weight, 0, Work(), 1, examples, start, model))
        self.vectors.params, _ = self.rule.step(self.vectors.params, arrivals, merge, 0)


@pytest.fixture(scope="session")
def clock_run():
    return ClockRun
