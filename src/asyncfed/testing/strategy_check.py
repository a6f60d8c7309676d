"""Whether a strategy can be simulated, deployed and resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import Stream, draw_key, purpose_key
from asyncfed.core.server import Server
from asyncfed.core.types import Dispatch, Output, Report, Wake
from asyncfed.problems.client_measurements import MEASUREMENTS
from asyncfed.strategies.protocol import Strategy
from asyncfed.testing.value_check import blame, pickled_copy

ARRIVALS_ALLOWED = 200
"""So many arrivals may pass before a strategy must have merged something, and merged or dropped each report.

As many timers may pass while nothing is in flight.
"""
TIMER_CHANCE = 0.25
"""How likely the next timer comes before the next arrival."""


class Conditions(NamedTuple):
    """What happens to the clients: the chances, per step, of a loss, a skip, a leave and a join; else a report."""

    name: str
    steps: int
    loss: float = 0.0
    leave: float = 0.0
    join: float = 0.0
    never_reports: bool = False  # client 0's tickets are all lost
    skip: float = 0.0
    never_sends: bool = False  # client 0's tickets are all skipped
    all_leave: float = 0.0  # the chance, when all are here, that all leave one by one; then one comes back


CONDITIONS = (
    Conditions("arrivals in random order", steps=ARRIVALS_ALLOWED + 40),
    Conditions("losses", steps=80, loss=0.3),
    Conditions("a client whose every ticket is lost", steps=60, never_reports=True),
    Conditions("joins and leaves", steps=120, loss=0.1, leave=0.1, join=0.15),
    Conditions("everybody leaves and one comes back", steps=120, join=0.2, all_leave=0.3),
    Conditions("clients with nothing worth sending", steps=80, loss=0.1, skip=0.4),
    Conditions("a client that never has anything worth sending", steps=60, never_sends=True),
)


def check_strategy(strategy: Strategy, num_clients: int = 5, seed: int = 0, metrics: Sequence[str] = ()) -> None:
    """Drive a strategy through randomised schedules and refuse it unless it can be simulated, deployed and resumed.

    It must be a frozen value (hashable, equal to its pickled copy, unchanged by a run); decide the same when given the
    same; go on identically from a snapshot that went through JSON; never break the server's rules (a ticket is merged
    or dropped once, with finite weights; only a ticket that is out is cancelled); never rest while clients are idle,
    nothing is in flight and no timer is set; recover from the loss of any ticket, from any client that has nothing
    worth sending and from the leave of any client; and refuse, in `check`, more tickets than there are clients.

    Timers (`Wake`) come in the order of their times, anywhere among the arrivals: never early, and sometimes late, as
    in a live run. Tickets that the strategy cancelled are not reported.

    Args:
        strategy: what is checked.
        num_clients: how many clients it is driven with, 1 or more.
        seed: of the schedules.
        metrics: names of numbers that the strategy decides by, such as those its rule measures; every report has them
            and the losses that the work asks for, each drawn from 0 to 1.

    Raises:
        AssertionError: it says what is wrong and when it happened.
    """
    copy = pickled_copy(strategy, "strategy")
    work = getattr(strategy, "work", None)  # one that is broken may have none
    asked = [name for name in MEASUREMENTS if getattr(work, name, False) and name not in metrics]
    metrics = [*metrics, *asked]
    with blame("check refuses the number of clients the strategy is tested with"):
        strategy.check(num_clients)
    for number, conditions in enumerate(CONDITIONS):
        key = draw_key(purpose_key(seed, "check_strategy"), number, 0)
        first = _Drive(strategy, num_clients, key, metrics).through(conditions)
        again = _Drive(strategy, num_clients, key, metrics).through(conditions)
        _expect_same(first, again, f"{conditions.name}: run twice on the same inputs")
        resumed = _Drive(copy, num_clients, key, metrics).through(conditions, interrupt_every=7)
        _expect_same(first, resumed, f"{conditions.name}: resumed from snapshots, with a pickled copy of the strategy")
    for ticket in range(2 * num_clients):
        for failure in ("loss", "skip", "leave"):
            _Drive(strategy, num_clients, draw_key(seed, ticket, 0), metrics).recovers_from(failure, ticket)
    assert strategy == copy, "the strategy changed while it was driven; its state must go in and come out instead."
    _expect_refusal_of_too_few_clients(strategy, num_clients)


def _expect_same(one: list[Any], other: list[Any], when: str) -> None:
    for step, (expected, got) in enumerate(zip(one, other, strict=True)):
        assert expected == got, f"{when}: step {step} was decided as {expected}, then as {got}."


def _expect_refusal_of_too_few_clients(strategy: Strategy, num_clients: int) -> None:
    """Only of a strategy that wants a fixed number of tickets and, with too few clients, dispatches fewer."""
    wanted = _first_tickets(strategy, num_clients)
    if _first_tickets(strategy, num_clients + 1) != wanted or wanted < 2:
        return
    if _first_tickets(strategy, wanted - 1) == wanted:
        return  # busy clients queue their tickets
    try:
        strategy.check(wanted - 1)
    except ConfigError:
        return
    raise AssertionError(
        f"check({wanted - 1}) accepts fewer clients than the {wanted} tickets the strategy dispatches."
    )


def _first_tickets(strategy: Strategy, num_clients: int) -> int:
    return sum(isinstance(output, Dispatch) for output in Server(strategy, [1] * num_clients).start())


class _Drive:
    """One server under one schedule. All choices come from `key` and from what the server can be seen to do."""

    def __init__(self, strategy: Strategy, num_clients: int, key: int, metrics: Sequence[str]) -> None:
        self._strategy = strategy
        self._metrics = metrics
        self._examples = [3 * client + 1 for client in range(num_clients)]
        self._key = key
        self._chance = Stream(key)
        self._leaving = False
        self._arrivals = 0
        self._arrival_of: dict[int, int] = {}
        self._now = 0.0
        self._timers: list[tuple[float, int, int]] = []  # when, in which order they were set, number
        self._timers_set = self._timers_in_a_row = 0
        self._server = Server(strategy, self._examples, seed=key)
        self._log: list[Any] = []
        self._put_in("start", self._server.start)

    def through(self, conditions: Conditions, interrupt_every: int | None = None) -> list[Any]:
        """Everything that was put in and decided; optionally a restored server takes over now and then."""
        for step in range(conditions.steps):
            if self._server.stopped is not None:
                break
            if interrupt_every is not None and step % interrupt_every == 0:
                self._resume_from_snapshot()
            self._next_input(conditions)
        return self._log

    def recovers_from(self, failure: str, ticket: int) -> None:
        """Lose one ticket, or its client: afterwards a merge must come, and as many must be at work as before."""
        server = self._server
        most = len(server.outstanding)
        while ticket not in server.outstanding:
            if server.stopped is not None or self._arrivals >= ARRIVALS_ALLOWED or not self._go_on():
                return
            most = max(most, len(server.outstanding))
        client, version = server.outstanding[ticket].client, server.version
        if failure == "leave":
            self._put_in(f"client {client} leaves", lambda: server.leave(client))
        elif failure == "skip":
            self._skip(ticket)
        else:
            self._put_in(f"ticket {ticket} is lost", lambda: server.lose(ticket))
        wanted = min(most, len(server.clients))
        most_since = len(server.outstanding)
        for _ in range(ARRIVALS_ALLOWED):
            if server.stopped is not None or (server.version > version and most_since >= wanted):
                return
            if not self._go_on():
                return
            most_since = max(most_since, len(server.outstanding))
        assert server.version > version, (
            f"after the {failure} of ticket {ticket}, {ARRIVALS_ALLOWED} arrivals brought no merge."
        )
        raise AssertionError(
            f"after the {failure} of ticket {ticket} at most {most_since} tickets were in flight at once; {wanted} "
            "were possible: the strategy dispatches no ticket in place of the lost one."
        )

    # ---- one step ------------------------------------------------------------------------------------------------

    def _next_input(self, conditions: Conditions) -> None:
        server, chance = self._server, self._chance
        here, away = sorted(server.clients), [c for c in range(len(self._examples)) if c not in server.clients]
        if not away and chance.unit() < conditions.all_leave:
            self._leaving = True
        if not here or self._leaving:
            self._leave_or_return(here, away)
            return
        draw = chance.unit()
        if away and draw < conditions.join:
            self._join(away[chance.below(len(away))])
        elif conditions.join <= draw < conditions.join + conditions.leave:
            client = here[chance.below(len(here))]
            self._put_in(f"client {client} leaves", lambda: server.leave(client))
        elif self._timer_is_next():
            self._wake()
        elif server.outstanding:
            self._finish_one(conditions)

    def _leave_or_return(self, here: list[int], away: list[int]) -> None:
        if here:
            self._put_in(f"client {here[0]} leaves", lambda: self._server.leave(here[0]))
        else:
            self._leaving = False
            self._join(away[self._chance.below(len(away))])

    def _finish_one(self, conditions: Conditions) -> None:
        server, chance = self._server, self._chance
        ticket = self._any_ticket()
        never_reports = conditions.never_reports and server.outstanding[ticket].client == 0
        if never_reports or chance.unit() < conditions.loss:
            self._put_in(f"ticket {ticket} is lost", lambda: server.lose(ticket))
        elif (conditions.never_sends and server.outstanding[ticket].client == 0) or (
            conditions.skip and chance.unit() < conditions.skip
        ):
            self._skip(ticket)
        else:
            self._arrive(ticket)

    def _go_on(self) -> bool:
        """The next timer or an arrival; False if there is neither."""
        if self._timer_is_next():
            self._wake()
        elif self._server.outstanding:
            self._arrive()
        else:
            return False
        return True

    def _timer_is_next(self) -> bool:
        return bool(self._timers) and (not self._server.outstanding or self._chance.unit() < TIMER_CHANCE)

    def _wake(self) -> None:
        """The timer that was to come first, at its time, or at once if that is past."""
        due, _, number = heappop(self._timers)
        self._now = max(self._now, due)
        self._timers_in_a_row = 0 if self._server.outstanding else self._timers_in_a_row + 1
        assert self._timers_in_a_row <= ARRIVALS_ALLOWED, (
            f"{ARRIVALS_ALLOWED} timers in a row passed with nothing in flight and {len(self._server.clients)} clients "
            "idle. Dispatch tickets in on_wake."
        )
        self._put_in(f"timer {number} at {self._now:g} s", lambda: self._server.wake(number, self._now))

    def _join(self, client: int) -> None:
        self._put_in(f"client {client} joins", lambda: self._server.join(client, self._examples[client]))

    def _any_ticket(self) -> int:
        tickets = list(self._server.outstanding)
        return tickets[self._chance.below(len(tickets))]

    def _arrive(self, ticket: int | None = None) -> None:
        """A report: of any age, after any time, with durations of nothing, of seconds and of years."""
        ticket = self._any_ticket() if ticket is None else ticket
        client = self._server.outstanding[ticket].client
        duration = (0.0, self._chance.unit(), 1e9)[self._chance.below(3)]
        self._now += self._chance.below(2)
        self._arrivals += 1
        self._arrival_of[ticket] = self._arrivals
        numbers = {name: self._chance.unit() for name in self._metrics} or None
        report = Report(ticket, client, self._now, duration, self._examples[client], numbers)
        self._put_in(f"ticket {ticket} is reported by client {client}", lambda: self._server.receive(report))

    def _skip(self, ticket: int) -> None:
        """The client did its work, and found nothing worth sending."""
        duration = self._chance.unit()
        self._now += self._chance.below(2)
        self._put_in(f"ticket {ticket} is skipped", lambda: self._server.skip(ticket, duration))

    # ---- what must hold after every step -------------------------------------------------------------------------

    def _put_in(self, what: str, deliver: Callable[[], list[Output]]) -> None:
        with blame(f"step {len(self._log)}, {what}"):
            outputs = deliver()
        self._log.append((what, outputs))
        for output in outputs:
            if isinstance(output, Wake):
                heappush(self._timers, (self._now + output.after, self._timers_set, output.number))
                self._timers_set += 1
        server = self._server
        if server.stopped is not None:
            return
        assert server.outstanding or self._timers or not len(server.clients), (
            f"step {len(self._log) - 1}, {what}: nothing is in flight, no timer is set and {len(server.clients)} "
            "clients are idle, so nothing will ever happen again. Dispatch tickets whenever work is lost, or a client "
            "joins."
        )
        for ticket in server.waiting:
            age = self._arrivals - self._arrival_of[ticket]
            assert age <= ARRIVALS_ALLOWED, f"ticket {ticket} is not merged or dropped {age} arrivals after its own."
            break

    def _resume_from_snapshot(self) -> None:
        snapshot = self._server.snapshot()
        with blame("the snapshot cannot be written as JSON and read back; keep plain values in the state"):
            restored = Server(self._strategy, self._examples, seed=self._key)
            restored.restore(json.loads(json.dumps(snapshot)))
        assert restored.snapshot() == snapshot, "the state is not the same after a snapshot went through JSON."
        self._server = restored
