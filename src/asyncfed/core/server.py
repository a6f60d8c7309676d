"""The server: a state machine that decides what happens when a client's update arrives.

It knows no clock, no socket, no file and no array. The simulator and a live engine drive the same object: they hand in
reports, losses, joins and leaves, and carry out, in order, the dispatches, merges, drops and the stop it answers with.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import inf, isfinite
from typing import Any

from asyncfed.core.errors import ProtocolError, StrategyError
from asyncfed.core.pool import ClientPool
from asyncfed.core.random import MASK, TICKET_STEP, Stream, purpose_key
from asyncfed.core.record import from_plain, to_plain
from asyncfed.core.types import (
    Action,
    Budget,
    Dispatch,
    Drop,
    Merge,
    Output,
    Report,
    Schedule,
    Stop,
    Strategy,
    Train,
    Update,
    Work,
    staleness_of,
)


class Server:
    """Drives a strategy. `num_examples[c]` is what client c declared on joining; clients in `absent` join later."""

    def __init__(
        self,
        strategy: Strategy,
        num_examples: Sequence[int],
        seed: int = 0,
        budget: Budget | None = None,
        absent: Collection[int] = (),
    ) -> None:
        self.strategy = strategy
        self.budget = budget or Budget()
        self.updates = 0
        self.stopped: str | None = None
        self.in_flight: dict[int, Dispatch] = {}
        self.waiting: dict[int, Dispatch] = {}
        self._examples = list(num_examples)
        self._declared: dict[int, int] = {}  # what those said who joined since; the rest is known from the start
        self._crowd_changed = False
        here = [c for c in range(len(num_examples)) if c not in absent] if absent else range(len(num_examples))
        self._view = ServerView(self, here, sum(self._examples[c] for c in here))
        self._most_rounds = inf if self.budget.rounds is None else self.budget.rounds
        self._most_updates = inf if self.budget.updates is None else self.budget.updates
        self._deadline = inf if self.budget.elapsed is None else self.budget.elapsed
        self._load: dict[int, int] = {}
        self._next_ticket = 0
        self._shortest, self._longest = inf, 0.0
        self._draws = purpose_key(seed, "strategy")
        self._inputs = 0
        self._plan: tuple[Work, Schedule | None, int, Work] | None = None
        self._state: Any = None

    @property
    def version(self) -> int:
        return self._view.version

    @property
    def round(self) -> int:
        return self._view.round

    @property
    def clients(self) -> ClientPool:
        return self._view.clients

    @property
    def next_ticket(self) -> int:
        """The number of the ticket that will be handed out next; all before it have been."""
        return self._next_ticket

    # ---- inputs ----------------------------------------------------------------------------------------------

    def start(self) -> list[Output]:
        """Begin the run: the first dispatches."""
        if self._inputs:
            raise ProtocolError("the run has begun already; start each server once, or restore it from a snapshot.")
        self._begin_input()
        self._state, actions = self.strategy.start(self._view)
        return self._carry_out(actions)

    def receive(self, report: Report) -> list[Output]:
        """A client's report has arrived. Raises `ProtocolError`, and changes nothing, if the client broke the rules."""
        dispatch = self.in_flight.get(report.ticket)
        if (
            dispatch is None
            or dispatch.client != report.client
            or not (0.0 <= report.duration < inf and 0.0 <= report.arrived_at < inf and report.num_examples >= 0)
        ):
            raise self._refusal(report, dispatch)
        self._begin_input()
        if report.arrived_at > self._deadline:
            return self._stop(f"the time budget of {self._deadline:g} s is spent")
        self.waiting[report.ticket] = dispatch
        self._settle(report.ticket, dispatch)
        duration = report.duration
        if duration < self._shortest:
            self._shortest = duration
        if duration > self._longest:
            self._longest = duration
        view = self._view
        update = Update(dispatch, report, staleness_of(dispatch, view.version))
        self._state, actions = self.strategy.on_update(self._state, update, view)
        return self._carry_out(actions)

    def lose(self, ticket: int) -> list[Output]:
        """A ticket will never be reported: its client crashed, timed out or vanished."""
        dispatch = self.in_flight.get(ticket)
        if dispatch is None:
            raise ProtocolError(f"ticket {ticket} cannot be lost: it is not in flight. Lose each ticket at most once.")
        self._begin_input()
        self._settle(ticket, dispatch)
        self._state, actions = self.strategy.on_lost(self._state, dispatch, self._view)
        return self._carry_out(actions)

    def join(self, client: int, num_examples: int) -> list[Output]:
        """A client has come (back) and has so many samples."""
        view = self._view
        if client < 0 or client in view.clients:
            raise ProtocolError(f"client {client} cannot join: it is here already, or its number is negative.")
        if num_examples < 0:
            raise ProtocolError(f"client {client} cannot join with {num_examples} examples; declare zero or more.")
        self._begin_input()
        self._declare(client, num_examples)
        self._crowd_changed = True
        view.total_examples += num_examples
        view.clients.add(client)
        view.idle.add(client)
        self._state, actions = self.strategy.on_join(self._state, client, view)
        return self._carry_out(actions)

    def leave(self, client: int) -> list[Output]:
        """A client is gone: the strategy is told, then the client's tickets in flight are lost, one by one.

        What it reported before stays valid.
        """
        view = self._view
        if client not in view.clients:
            raise ProtocolError(f"client {client} cannot leave: it is not here.")
        self._begin_input()
        view.clients.discard(client)
        view.idle.discard(client)
        view.total_examples -= self._examples[client]
        self._crowd_changed = True
        self._state, actions = self.strategy.on_leave(self._state, client, view)
        outputs = self._carry_out(actions)
        for ticket in [t for t, d in self.in_flight.items() if d.client == client]:
            if self.stopped is None:
                outputs += self.lose(ticket)
        return outputs

    def halt(self, reason: str) -> list[Output]:
        """The engine ends the run: it diverged, or nothing is left that could happen."""
        return self._stop(reason)

    # ---- carrying out a strategy's decisions -----------------------------------------------------------------

    def _carry_out(self, actions: Sequence[Action]) -> list[Output]:
        outputs: list[Output] = []
        for action in actions:
            if isinstance(action, Train):
                outputs.append(self._dispatch(action))
            elif isinstance(action, Merge):
                self._merge(action)
                outputs.append(action)
                if self.updates >= self._most_updates or (action.ends_round and self._view.round >= self._most_rounds):
                    return outputs + self._stop(self._spent())
            elif isinstance(action, Drop):
                if self.waiting.pop(action.ticket, None) is None:
                    raise self._fault(f"drops ticket {action.ticket}, which is not a reported one")
                outputs.append(action)
            elif isinstance(action, Stop):
                return outputs + self._stop(action.reason)
            else:
                raise self._fault(f"answered {action!r}, which is not a Train, Merge, Drop or Stop")
        return outputs

    def _dispatch(self, action: Train) -> Dispatch:
        client, view = action.client, self._view
        load = self._load.get(client, 0)
        here = client in view.clients if load else view.idle.remove(client)
        if not here:
            raise self._fault(f"trains client {client}, which is not here")
        work = self._planned(action)
        if load and work.start == "own":
            raise self._fault(f"trains busy client {client} from its own model, which is still changing")
        ticket = self._next_ticket
        self._next_ticket = ticket + 1
        self._load[client] = load + 1
        dispatch = Dispatch(ticket, client, view.version, work)
        self.in_flight[ticket] = dispatch
        view.in_flight += 1
        return dispatch

    def _planned(self, action: Train) -> Work:
        """The work with its rate set for this round; rounds are long, so the last plan is usually the answer."""
        plan, view = self._plan, self._view
        if plan and plan[0] is action.work and plan[1] is action.schedule and plan[2] == view.round:
            return plan[3]
        work = action.work
        if action.schedule is not None:
            work = action.schedule.plan(work, view.round, view.delay_spread)
        self._plan = (action.work, action.schedule, view.round, work)
        return work

    def _merge(self, merge: Merge) -> None:
        count = len(merge.tickets)
        if not count or count != len(merge.weights):
            raise self._fault(f"merges {count} tickets with {len(merge.weights)} weights")
        if not isfinite(sum(merge.weights, merge.keep)):  # one NaN or infinity spoils the sum
            raise self._fault(f"merges with keep {merge.keep} and weights {merge.weights}; all must be finite")
        for ticket in merge.tickets:
            if self.waiting.pop(ticket, None) is None:
                raise self._fault(f"merges ticket {ticket}, which is not a reported, unmerged one")
        view = self._view
        view.version += 1
        self.updates += count
        if merge.ends_round:
            view.round += 1
            if self._longest >= self._shortest:
                view.delay_spread = self._longest - self._shortest
            self._shortest, self._longest = inf, 0.0

    def _spent(self) -> str:
        if self._view.round >= self._most_rounds:
            return f"all {self._most_rounds} rounds are done"
        return f"all {self._most_updates} updates are merged"

    def _stop(self, reason: str) -> list[Output]:
        self.stopped = reason
        return [Stop(reason)]

    # ---- bookkeeping -----------------------------------------------------------------------------------------

    def _begin_input(self) -> None:
        if self.stopped is not None:
            raise ProtocolError(f"the run has stopped ({self.stopped}); nothing more can be handed in.")
        self._inputs += 1
        # The draws of an input are keyed by how many inputs came before it, so by nothing else.
        self._view.rng.word = (self._draws + self._inputs * TICKET_STEP) & MASK

    def _refusal(self, report: Report, dispatch: Dispatch | None) -> ProtocolError:
        """Why this report cannot be taken."""
        who = f"client {report.client} reported ticket {report.ticket}"
        if dispatch is None:
            if 0 <= report.ticket < self._next_ticket:
                return ProtocolError(f"{who} twice, or after it was given up as lost; the report is refused.")
            return ProtocolError(
                f"{who}, which was never handed out (the next one will be {self._next_ticket}); the report is refused."
            )
        if dispatch.client != report.client:
            return ProtocolError(f"{who}, which belongs to client {dispatch.client}; the report is refused.")
        return ProtocolError(
            f"{who} with {report.duration} s of work on {report.num_examples} examples, arrived at "
            f"{report.arrived_at} s; all must be finite and zero or positive. The report is refused."
        )

    def _declare(self, client: int, num_examples: int) -> None:
        if client >= len(self._examples):
            self._examples.extend([0] * (client + 1 - len(self._examples)))
        self._examples[client] = self._declared[client] = num_examples

    def _settle(self, ticket: int, dispatch: Dispatch) -> None:
        del self.in_flight[ticket]
        view, client = self._view, dispatch.client
        view.in_flight -= 1
        load = self._load.pop(client) - 1
        if load:
            self._load[client] = load
        elif client in view.clients:
            view.idle.add(client)

    def _fault(self, what: str) -> StrategyError:
        return StrategyError(
            f"{type(self.strategy).__name__} {what}. This is a defect of the strategy, not of a client."
        )

    def examples_of(self, client: int) -> int:
        return self._examples[client]

    def load_of(self, client: int) -> int:
        return self._load.get(client, 0)

    # ---- snapshots -------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """All of it, as plain values that JSON can hold. `restore` continues from there to the same decisions."""
        view = self._view
        return {
            "version": view.version,
            "round": view.round,
            "updates": self.updates,
            "stopped": self.stopped,
            "delay_spread": view.delay_spread,
            "in_flight": [to_plain(d) for d in self.in_flight.values()],
            "waiting": [to_plain(d) for d in self.waiting.values()],
            "declared": list(self._declared.items()),
            "clients": list(view.clients) if self._crowd_changed else None,
            "idle": list(view.idle),
            "next_ticket": self._next_ticket,
            "shortest": None if self._shortest == inf else self._shortest,
            "longest": self._longest,
            "inputs": self._inputs,
            "state": to_plain(self._state),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Become the server that `snapshot` was taken of; made with the same strategy, seed and budget."""
        self.updates, self.stopped = snapshot["updates"], snapshot["stopped"]
        self.in_flight = {d["ticket"]: from_plain(d, Dispatch) for d in snapshot["in_flight"]}
        self.waiting = {d["ticket"]: from_plain(d, Dispatch) for d in snapshot["waiting"]}
        for client, num_examples in snapshot["declared"]:
            self._declare(client, num_examples)
        self._restore_view(snapshot)
        self._load = {}
        for dispatch in self.in_flight.values():
            self._load[dispatch.client] = self._load.get(dispatch.client, 0) + 1
        self._next_ticket, self._inputs = snapshot["next_ticket"], snapshot["inputs"]
        self._shortest = inf if snapshot["shortest"] is None else snapshot["shortest"]
        self._longest = snapshot["longest"]
        self._plan = None
        self._state = from_plain(snapshot["state"], self.strategy.state_type)

    def _restore_view(self, snapshot: dict[str, Any]) -> None:
        view = self._view
        view.version, view.round, view.delay_spread = snapshot["version"], snapshot["round"], snapshot["delay_spread"]
        self._crowd_changed = snapshot["clients"] is not None
        if self._crowd_changed:
            view.clients = ClientPool(snapshot["clients"])
        view.idle = ClientPool(snapshot["idle"])
        view.in_flight = len(self.in_flight)
        view.total_examples = sum(self._examples[c] for c in view.clients)


class ServerView:
    """What a strategy sees of the server. The server keeps it up to date; a strategy only reads it."""

    __slots__ = (
        "_server",
        "clients",
        "delay_spread",
        "idle",
        "in_flight",
        "rng",
        "round",
        "total_examples",
        "version",
    )

    def __init__(self, server: Server, clients: Sequence[int], total_examples: int) -> None:
        self._server = server
        self.rng = Stream(0)
        self.version = 0
        self.round = 0
        self.delay_spread: float | None = None
        self.clients = ClientPool(clients)
        self.idle = ClientPool(clients)
        self.in_flight = 0
        self.total_examples = total_examples

    @property
    def oldest_base(self) -> int | None:
        """The oldest version anyone is still training from. Tickets come in order of version, so it is the first's."""
        for dispatch in self._server.in_flight.values():
            return dispatch.base_version
        return None

    def num_examples(self, client: int) -> int:
        return self._server.examples_of(client)

    def load(self, client: int) -> int:
        """How many tickets the client holds."""
        return self._server.load_of(client)
