"""What an independent implementation is given: who was asked, what happened in which order and when. Nothing else.

An implementation is a function `algorithm(run, settings)` that goes through the events and says what follows:

    for event in run.events():
        if event.kind == "arrived":
            run.publish(run.x + run.delta(event.ticket), [event.ticket])

Local training, staleness and versions are computed here, from the data, by full-batch gradient steps. After the body of
the loop, the tickets that the recorded run sent out at this point leave with the present model; whom they went to is
part of the schedule, unless the algorithm says it by `run.predict`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Client:
    """A least-squares client: mean of (a.w - y)^2 / 2 over its rows, plus l2/2 |w|^2."""

    a: np.ndarray
    y: np.ndarray
    l2: float

    @property
    def samples(self) -> int:
        return len(self.y)

    def loss(self, w: np.ndarray) -> float:
        return float(0.5 * np.mean((self.a @ w - self.y) ** 2) + 0.5 * self.l2 * (w @ w))

    def gradient(self, w: np.ndarray) -> np.ndarray:
        return self.a.T @ (self.a @ w - self.y) / len(self.y) + self.l2 * w


@dataclass
class Work:
    """Local training: `steps` steps at rate / (epoch + 1)^decay, with a proximal term; an epoch has `per_epoch` steps.

    Gradients are those of all the client's rows. An epoch has several steps only where all rows of a client are the
    same, so that any batch of them has that gradient too.
    """

    steps: int
    rate: float
    decay: float = 0.0
    proximal: float = 0.0
    per_epoch: int = 1

    def rates(self) -> list[float]:
        return [self.rate / (step // self.per_epoch + 1) ** self.decay for step in range(self.steps)]


@dataclass
class Event:
    """`kind` is start, arrived, lost, joined, left or woken. `gone` are the tickets that are lost with who left.

    `draws` are the random numbers that this event had; `number` is a timer's.
    """

    kind: str
    time: float = 0.0
    ticket: int = -1
    client: int = -1
    duration: float = 0.0
    number: int = 0
    gone: tuple[int, ...] = ()
    draws: Any = None
    sent: tuple[tuple[int, int], ...] = ()


@dataclass
class Ticket:
    number: int
    client: int
    version: int
    base: np.ndarray
    work: Work
    correction: Any
    sent_at: float
    result: np.ndarray | None = None


@dataclass
class Decided:
    """What followed from one event."""

    merged: list[tuple[int, ...]] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)


class Contradiction(AssertionError):
    """Something happened that could not, had the formula been followed."""


class Run:
    """One schedule, gone through once."""

    def __init__(
        self,
        clients: Sequence[Client],
        x0: np.ndarray,
        works: Sequence[Work],
        events: Sequence[Event],
        here: Sequence[int],
        own_models: Callable[[int], np.ndarray] | None = None,
    ) -> None:
        self.clients, self.works, self.here = list(clients), list(works), set(here)
        self.versions = [np.array(x0, float)]
        self.tickets: dict[int, Ticket] = {}
        self.out: dict[int, Ticket] = {}
        self.decided: list[Decided] = []
        self.own_model = own_models
        self.now = 0.0
        # What an algorithm may set, for the tickets that leave from then on:
        self.correction: Callable[[int], np.ndarray] | None = None
        self.work_of: Callable[[int], Work] = lambda client: self.works[client]
        self.base_for: Callable[[int], int] = lambda client: self.version
        self.start_from: Callable[[int], np.ndarray] = lambda client: self.versions[self.base_for(client)]
        self._events, self._predicted, self._limits = events, None, None
        self.broken: list[str] = []

    # ---- the model and its versions ----

    @property
    def x(self) -> np.ndarray:
        return self.versions[-1]

    @property
    def version(self) -> int:
        return len(self.versions) - 1

    @property
    def num_clients(self) -> int:
        return len(self.clients)

    def publish(self, x: np.ndarray, tickets: Sequence[int]) -> None:
        """A new version, made of these tickets."""
        self.versions.append(np.array(x, float))
        self.decided[-1].merged.append(tuple(sorted(tickets)))

    def drop(self, ticket: int) -> None:
        self.decided[-1].dropped.append(ticket)

    def cancel(self, ticket: int) -> None:
        self.decided[-1].cancelled.append(ticket)
        del self.out[ticket]

    # ---- tickets ----

    def client_of(self, ticket: int) -> int:
        return self.tickets[ticket].client

    def samples_of(self, ticket: int) -> int:
        return self.clients[self.client_of(ticket)].samples

    def tau(self, ticket: int) -> int:
        """Versions published since this ticket's client downloaded the model: 0 if none."""
        return self.version - self.tickets[ticket].version

    def base(self, ticket: int) -> np.ndarray:
        return self.tickets[ticket].base

    def result(self, ticket: int) -> np.ndarray:
        """The model that local training ends with."""
        t = self.tickets[ticket]
        if t.result is None:
            w, client = t.base.copy(), self.clients[t.client]
            for rate in t.work.rates():
                step = client.gradient(w) + t.work.proximal * (w - t.base)
                if t.correction is not None:
                    step = step + t.correction
                w = w - rate * step
            t.result = w
        return t.result

    def delta(self, ticket: int) -> np.ndarray:
        """Against the model that was downloaded."""
        return self.result(ticket) - self.base(ticket)

    def busy(self) -> set[int]:
        return {t.client for t in self.out.values()}

    # ---- who works next ----

    def predict(self, clients: Sequence[int], ordered: bool = True) -> None:
        """The tickets that leave after this event go to these clients, in this order or in any."""
        self._predicted = (list(clients), ordered)

    def limit(self, must: set[int] | None = None, may: set[int] | None = None) -> None:
        """The tickets that leave after this event go to all of `must`, and to nobody outside of `may`."""
        self._limits = (must or set(), may)

    def idle(self) -> set[int]:
        return self.here - self.busy()

    # ---- the events ----

    def events(self) -> Iterator[Event]:
        for number, event in enumerate(self._events):
            self.now, self._predicted, self._limits = event.time, None, None
            self.decided.append(Decided())
            if event.kind == "joined":
                self.here.add(event.client)
            elif event.kind == "left":
                self.here.discard(event.client)
                event.gone = tuple(t for t, ticket in self.out.items() if ticket.client == event.client)
                for ticket in event.gone:
                    del self.out[ticket]
            elif event.kind in ("arrived", "lost"):
                if event.ticket not in self.out:
                    raise Contradiction(f"ticket {event.ticket} {event.kind}, which the formula had given up before")
                del self.out[event.ticket]
            yield event
            self._check_prediction(number, event)
            for ticket, client in event.sent:
                self._send(ticket, client)

    def _send(self, ticket: int, client: int) -> None:
        base = np.array(self.start_from(client), float)
        correction = None if self.correction is None else np.array(self.correction(client), float)
        sent = Ticket(ticket, client, self.base_for(client), base, self.work_of(client), correction, self.now)
        self.tickets[ticket] = self.out[ticket] = sent

    def _check_prediction(self, number: int, event: Event) -> None:
        if self._limits is not None:
            (must, may), got = self._limits, {client for _, client in event.sent}
            if not must <= got or (may is not None and not got <= may):
                self.broken.append(f"event {number}: tickets went to {got}; must {must}, may {may}")
        if self._predicted is None:
            return
        wanted, ordered = self._predicted
        got = [client for _, client in event.sent]
        if (got if ordered else sorted(got)) != (wanted if ordered else sorted(wanted)):
            self.broken.append(f"event {number} ({event.kind}): tickets went to {got}, the algorithm says {wanted}")
