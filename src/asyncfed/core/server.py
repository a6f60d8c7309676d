"""The server: a state machine that decides what happens when a client's update arrives.

It knows no clock, no socket, no file and no array. The simulator and a live engine drive the same object: they hand in
reports, skips, losses, joins and leaves, and carry out, in order, the dispatches, merges, drops and the stop it answers
with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, cast

from asyncfed.core.errors import ProtocolError, StrategyError
from asyncfed.core.pool import ClientPool
from asyncfed.core.random import MASK, TICKET_STEP, Stream, purpose_key
from asyncfed.core.record import from_plain, to_plain
from asyncfed.core.types import (
    Action,
    Budget,
    Cancel,
    Dispatch,
    Drop,
    Merge,
    Output,
    Report,
    Stop,
    Train,
    Update,
    Wake,
    Work,
    staleness_of,
)

if TYPE_CHECKING:
    from asyncfed.strategies.protocol import Strategy, WakingStrategy


class Server:
    """Drives a strategy, to which it shows itself as a `View`.

    Args:
        strategy: what decides.
        num_examples: what each client declared on joining.
        seed: of the strategy's draws.
        budget: when the run ends by itself; None for never.
        absent: clients that join later.

    `outstanding` are the tickets that are out, `waiting` those reported and not yet merged or dropped.
    """

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
        self.updates = self.version = self.round = self.in_flight = self.next_ticket = 0
        self.stopped: str | None = None
        self.outstanding, self.waiting = dict[int, Dispatch](), dict[int, Dispatch]()
        present = [c for c in range(len(num_examples)) if c not in absent] if absent else range(len(num_examples))
        self.clients, self.idle = ClientPool(present), ClientPool(present)
        self.delay_spread: float | None = None
        self.rng = Stream(0)
        # And the samples of those who joined since, less those of who is not here any more, or not yet.
        self._examples, self._gained = num_examples, -sum([num_examples[c] for c in absent if c < len(num_examples)])
        self._examples_at_first = cache(lambda: sum(num_examples))  # not before somebody asks: there may be 10**8
        self._declared: dict[int, int] = {}  # of clients that joined since; the rest is known from the start
        self._clients_changed = False
        limits = (self.budget.rounds, self.budget.updates, self.budget.elapsed)
        self._most_rounds, self._most_updates, self._deadline = (inf if limit is None else limit for limit in limits)
        # How many tickets each busy client has, and the last accepted one of each client whose work remembers.
        self._load, self._memories = dict[int, int](), dict[int, int]()
        self._shortest, self._longest = inf, 0.0
        self._draws, self._inputs = purpose_key(seed, "strategy"), 0
        self._in_order = True  # tickets that are out come in the order of their versions
        self._plan: tuple[Work, Any, int, Work, bool] | None = None
        self._observe: Any = getattr(strategy, "observe", None) if getattr(strategy, "observes", False) else None
        self._state: Any = None

    # ---- what else a strategy may see of it ------------------------------------------------------------------

    @property
    def oldest_base(self) -> int | None:
        """The oldest version anyone is still training from: the first ticket's, unless one was sent an older model."""
        bases = (dispatch.base_version for dispatch in self.outstanding.values())
        return next(bases, None) if self._in_order else min(bases, default=None)

    def num_examples(self, client: int) -> int:
        """What the client declared when it joined."""
        at_first = self._examples[client] if client < len(self._examples) else 0
        return self._declared.get(client, at_first)

    @property
    def total_examples(self) -> int:
        """The samples of all clients that are here; summed up when somebody asks."""
        return self._examples_at_first() + self._gained

    def load(self, client: int) -> int:
        """How many tickets the client holds."""
        return self._load.get(client, 0)

    # ---- inputs ----------------------------------------------------------------------------------------------

    def start(self) -> list[Output]:
        """Begin the run: the first dispatches."""
        if self._inputs:
            raise ProtocolError("the run has begun already; start each server once, or restore it from a snapshot.")
        self._begin_input()
        self._state, actions = self.strategy.start(self)
        return self._carry_out(actions)

    def receive(self, report: Report) -> list[Output]:
        """A client's report has arrived. Raises `ProtocolError`, and changes nothing, if the client broke the rules."""
        dispatch = self.outstanding.get(report.ticket)
        if (
            dispatch is None
            or dispatch.client != report.client
            or not (0.0 <= report.duration < inf and 0.0 <= report.arrived_at < inf and report.num_examples >= 0)
        ):
            raise self._refusal(report, dispatch)
        self._begin_input()
        if report.arrived_at > self._deadline:
            return self.halt(f"the time budget of {self._deadline:g} s is spent")
        self.waiting[report.ticket] = dispatch
        self._settle(report.ticket, dispatch)
        if dispatch.memory is not None:
            self._memories[report.client] = report.ticket
        self._note_duration(report.duration)
        update = Update(dispatch, report, staleness_of(dispatch, self.version))
        if self._observe is not None:
            self._state = self._observe(self._state, update, self)
        self._state, actions = self.strategy.on_update(self._state, update, self)
        return self._carry_out(actions)

    def skip(self, ticket: int, duration: float) -> list[Output]:
        """A client did the work of this ticket, for `duration` seconds, and found nothing worth sending.

        What it kept counts: its next ticket uses the memory of this one. Nothing is merged, and the strategy is asked
        as if the ticket were lost.
        """
        dispatch = self.outstanding.get(ticket)
        if dispatch is None or not 0.0 <= duration < inf:
            why = "it is not in flight" if dispatch is None else f"{duration} s is no time that work can take"
            raise ProtocolError(f"ticket {ticket} cannot be skipped: {why}. Skip each ticket at most once.")
        self._begin_input()
        self._settle(ticket, dispatch)
        if dispatch.memory is not None:
            self._memories[dispatch.client] = ticket
        self._note_duration(duration)
        self._state, actions = self.strategy.on_lost(self._state, dispatch, self)
        return self._carry_out(actions)

    def lose(self, ticket: int, forgets: bool = False) -> list[Output]:
        """A ticket will never be reported: its client crashed, timed out or vanished.

        With `forgets`, its client has lost what it remembered and cannot do without: the next ticket names no memory.
        """
        dispatch = self.outstanding.get(ticket)
        if dispatch is None:
            raise ProtocolError(f"ticket {ticket} cannot be lost: it is not in flight. Lose each ticket at most once.")
        self._begin_input()
        self._settle(ticket, dispatch)
        if forgets:
            self._memories.pop(dispatch.client, None)
        self._state, actions = self.strategy.on_lost(self._state, dispatch, self)
        return self._carry_out(actions)

    def join(self, client: int, num_examples: int) -> list[Output]:
        """A client has come (back) and has so many samples."""
        if client < 0 or client in self.clients or num_examples < 0:
            why = "it is here already, or one of the numbers is negative"
            raise ProtocolError(f"client {client} cannot join with {num_examples} examples: {why}.")
        self._begin_input()
        self._declared[client] = num_examples
        self._clients_changed = True
        self._gained += num_examples
        self.clients.add(client)
        self.idle.add(client)
        self._state, actions = self.strategy.on_join(self._state, client, self)
        return self._carry_out(actions)

    def leave(self, client: int) -> list[Output]:
        """A client is gone: the strategy is asked first, then the client's tickets in flight are lost, one by one.

        What it reported before stays valid.
        """
        if client not in self.clients:
            raise ProtocolError(f"client {client} cannot leave: it is not here.")
        self._begin_input()
        self.clients.remove(client)
        self.idle.remove(client)
        self._gained -= self.num_examples(client)
        self._clients_changed = True
        self._state, actions = self.strategy.on_leave(self._state, client, self)
        outputs = self._carry_out(actions)
        for ticket in [t for t, d in self.outstanding.items() if d.client == client]:
            if self.stopped is None:
                outputs += self.lose(ticket)
        return outputs

    def wake(self, number: int, now: float) -> list[Output]:
        """The time of a `Wake` has come; the clock shows `now` seconds."""
        self._begin_input()
        self._state, actions = cast("WakingStrategy", self.strategy).on_wake(self._state, number, now, self)
        return self._carry_out(actions)

    def halt(self, reason: str) -> list[Output]:
        """End the run: it is done, or diverged, or nothing is left that could happen."""
        self.stopped = reason
        return [Stop(reason)]

    # ---- carrying out a strategy's decisions -----------------------------------------------------------------

    def _carry_out(self, actions: Sequence[Action]) -> list[Output]:
        outputs: list[Output] = []
        for action in actions:
            if isinstance(action, Train):
                outputs.append(self._dispatch(action))
            elif isinstance(action, Merge):
                self._merge(action)
                outputs.append(action)
                if (spent := self.spent(action.ends_round)) is not None:
                    return outputs + self.halt(spent)
            elif isinstance(action, Drop):
                self._drop(action.ticket)
                outputs.append(action)
            elif isinstance(action, Cancel):
                dispatch = self.outstanding.get(action.ticket)
                if dispatch is None:
                    raise self._fault(f"cancels ticket {action.ticket}, which is not out")
                self._settle(action.ticket, dispatch)
                outputs.append(action)
            elif isinstance(action, Wake):
                if not 0.0 <= action.after < inf or action.number < 0 or not hasattr(self.strategy, "on_wake"):
                    raise self._fault(f"answered {action!r}; it needs `on_wake`, and a time and a number of at least 0")
                outputs.append(action)
            elif isinstance(action, Stop):
                return outputs + self.halt(action.reason)
            else:
                raise self._fault(f"answered {action!r}, which is not a Train, Merge, Drop, Cancel, Wake or Stop")
        return outputs

    def _dispatch(self, action: Train) -> Dispatch:
        client = action.client
        load = self._load.get(client, 0)
        present = client in self.clients if load else self.idle.remove(client)
        if not present:
            raise self._fault(f"trains client {client}, which is not here")
        plan = self._plan
        if not (plan and plan[0] is action.work and plan[1] is action.schedule and plan[2] == self.round):
            plan = self._make_plan(action)
        work, remembers = plan[3], plan[4]
        if load and remembers:
            raise self._fault(f"trains busy client {client} on work that remembers; its memory is still changing")
        ticket, version = self.next_ticket, self.version
        if action.base_version is not None:
            version, self._in_order = action.base_version, False
        self.next_ticket = ticket + 1
        self._load[client] = load + 1
        memory = self._memories.get(client, -1) if remembers else None
        self.outstanding[ticket] = dispatch = Dispatch(ticket, client, version, work, memory)
        self.in_flight += 1
        return dispatch

    def _make_plan(self, action: Train) -> tuple[Work, Any, int, Work, bool]:
        """The work with its rate set for this round, and whether it remembers; mostly that of the next tickets too."""
        schedule = action.schedule
        work = action.work if schedule is None else schedule.plan(action.work, self.round, self.delay_spread)
        self._plan = plan = (action.work, action.schedule, self.round, work, work.remembers)
        return plan

    def _drop(self, ticket: int) -> None:
        dispatch = self.waiting.pop(ticket, None)
        if dispatch is None:
            raise self._fault(f"drops ticket {ticket}, which is not a reported one")
        # The update has no effect, so the client continues with the memory it had before this ticket; not if it is at
        # work with the later one already. Its own model is different: the client has trained it further, whatever the
        # server did with the update.
        client, memory = dispatch.client, dispatch.memory
        if memory is None or dispatch.work.start == "own" or self._memories[client] != ticket:
            return
        if not any(other.client == client and other.memory == ticket for other in self.outstanding.values()):
            self._memories[client] = memory

    def _merge(self, merge: Merge) -> None:
        count = len(merge.tickets)
        if not count or count != len(merge.weights):
            raise self._fault(f"merges {count} tickets with {len(merge.weights)} weights")
        if not isfinite(sum(merge.weights, merge.keep)):  # one NaN or infinity spoils the sum
            raise self._fault(f"merges with keep {merge.keep} and weights {merge.weights}; all must be finite")
        for ticket in merge.tickets:
            if self.waiting.pop(ticket, None) is None:
                raise self._fault(f"merges ticket {ticket}, which is not a reported, unmerged one")
        self.version += 1
        self.updates += count
        if merge.ends_round:
            self.end_round(self._shortest, self._longest)

    def end_round(self, shortest: float, longest: float) -> None:
        """A round is complete, whose reports took so many seconds."""
        self.round += 1
        if longest >= shortest:
            self.delay_spread = longest - shortest
        self._shortest, self._longest = inf, 0.0

    def spent(self, ends_round: bool) -> str | None:
        """Why the run ends with the merge just made, which ended a round or not; None if the budget is not spent."""
        if ends_round and self.round >= self._most_rounds:
            return f"all {self._most_rounds} rounds are done"
        return f"all {self._most_updates} updates are merged" if self.updates >= self._most_updates else None

    # ---- bookkeeping -----------------------------------------------------------------------------------------

    def _begin_input(self) -> None:
        if self.stopped is not None:
            raise ProtocolError(f"the run has stopped ({self.stopped}); it takes no more input.")
        self._inputs += 1
        # The draws of an input are keyed by how many inputs came before it, so by nothing else.
        self.rng.word = (self._draws + self._inputs * TICKET_STEP) & MASK

    def _note_duration(self, duration: float) -> None:
        self._shortest = duration if duration < self._shortest else self._shortest
        self._longest = duration if duration > self._longest else self._longest

    def _refusal(self, report: Report, dispatch: Dispatch | None) -> ProtocolError:
        """Why this report cannot be taken."""
        why = f": {report.duration} s, {report.num_examples} examples, at {report.arrived_at} s; not all 0 or more"
        if dispatch is None and 0 <= report.ticket < self.next_ticket:
            why = " twice, or after it was given up as lost"
        elif dispatch is None:
            why = f", which was never dispatched (the next one will be {self.next_ticket})"
        elif dispatch.client != report.client:
            why = f", which belongs to client {dispatch.client}"
        return ProtocolError(f"client {report.client} reported ticket {report.ticket}{why}; the report is refused.")

    def _settle(self, ticket: int, dispatch: Dispatch) -> None:
        del self.outstanding[ticket]
        client = dispatch.client
        self.in_flight -= 1
        load = self._load.pop(client) - 1
        if load:
            self._load[client] = load
        elif client in self.clients:
            self.idle.add(client)

    def _fault(self, what: str) -> StrategyError:
        name = type(self.strategy).__name__
        return StrategyError(f"{name} {what}. This is a defect of the strategy, not of a client.")

    # ---- snapshots -------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """All of it, as plain values that JSON can hold. `restore` continues from there to the same decisions."""
        return {
            "version": self.version,
            "round": self.round,
            "updates": self.updates,
            "stopped": self.stopped,
            "delay_spread": self.delay_spread,
            "in_flight": [to_plain(d) for d in self.outstanding.values()],
            "waiting": [to_plain(d) for d in self.waiting.values()],
            "declared": list(self._declared.items()),
            "clients": self.clients.to_plain() if self._clients_changed else None,
            "idle": self.idle.to_plain(),
            "next_ticket": self.next_ticket,
            "shortest": None if self._shortest == inf else self._shortest,
            "longest": self._longest,
            "inputs": self._inputs,
            "memories": list(self._memories.items()),
            "state": to_plain(self._state),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Become the server that `snapshot` was taken of; made with the same strategy, seed and budget."""
        for name in ("version", "round", "updates", "stopped", "delay_spread", "next_ticket"):
            setattr(self, name, snapshot[name])
        self.outstanding = {d["ticket"]: from_plain(d, Dispatch) for d in snapshot["in_flight"]}
        self.waiting = {d["ticket"]: from_plain(d, Dispatch) for d in snapshot["waiting"]}
        self.in_flight = len(self.outstanding)
        self._in_order = False  # perhaps they do not
        self._declared = dict(snapshot["declared"])
        self._clients_changed = snapshot["clients"] is not None
        if self._clients_changed:
            self.clients = ClientPool.from_plain(snapshot["clients"])
            others = self.clients.missing(len(self._examples)).union(self._declared)
            self._gained = sum(n for c, n in self._declared.items() if c in self.clients)
            self._gained -= sum([self._examples[c] for c in others if c < len(self._examples)])
        self.idle = ClientPool.from_plain(snapshot["idle"])
        self._load = dict(Counter(d.client for d in self.outstanding.values()))
        self._shortest = inf if snapshot["shortest"] is None else snapshot["shortest"]
        self._longest, self._inputs, self._plan = snapshot["longest"], snapshot["inputs"], None
        self._memories = dict(snapshot.get("memories", ()))
        self._state = from_plain(snapshot["state"], self.strategy.state_type)
