"""A simulation between two arrivals as arrays, for the compiled loop: taken from its objects, given back to them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.record import to_plain
from asyncfed.core.types import Dispatch, Work
from asyncfed.engine.execution import Execution
from asyncfed.engine.training import LateTraining
from asyncfed.kernels.arrival_loop import SLOT, push
from asyncfed.kernels.client_tables import empty_table
from asyncfed.kernels.event_rows import LONGEST_ROW
from asyncfed.sim.client_books import ClientBooks
from asyncfed.sim.loop_state import LoopState

Array = NDArray[Any]
HeapEntry = tuple[float, int, float, float, bool]

PACKED_BYTES = 1 << 20
"""Room for the events of some ten thousand arrivals."""

LEAST_ENTRIES = 4096
"""Entries that the table of clients has room for at least, besides those of one arrival."""

LEDGER_COUNTS = {
    "energy": "energy",
    "bytes_down": "bytes_down",
    "bytes_up": "bytes_up",
    "lost": "lost",
    "participants": "participants",
    "_merges": "merges",
    "_squares": "squares",
    "_merged": "merged",
    "_staleness_sum": "staleness_sum",
    "_staleness_max": "staleness_max",
    "_shortest": "round_shortest",
    "_longest": "round_longest",
}
"""What the ledger counts, and what the loop calls it."""


class Clock(NamedTuple):
    """The parts of a simulation that its compiled loop takes over."""

    heap: list[HeapEntry]
    free_at: dict[int, float]
    training: LateTraining


class LoopArrays:
    """All that `kernels.arrival_loop` reads and writes; `state` is its record of numbers.

    Args:
        execution: the run.
        clock: the simulation's own part of it.
        tickets: how many are out at once.
        hold: how many arrivals wait for a merge at most.
        num_clients: how many clients there are.
        rows: where each client's latest model is, if they are kept.
    """

    def __init__(
        self, execution: Execution, clock: Clock, tickets: int, hold: int, num_clients: int, rows: dict[int, int]
    ) -> None:
        self._execution, self._clock = execution, clock
        size, params = tickets + hold + 1, execution.vectors.params
        self.state = LoopState()
        self.slots = np.zeros(size, SLOT)
        self.heap, self.free, self.held = (np.zeros(size, np.int64) for _ in range(3))
        self.params = np.array(params)
        self.starts, self.models = (np.zeros((size, params.size), params.dtype) for _ in range(2))
        self.works, self.work = np.zeros((size, 5)), np.zeros(5)
        merges = execution.ledger.merges_by_client
        at_once = LEAST_ENTRIES + 4 * (1 + tickets)
        self.books = ClientBooks(execution.server.idle, merges, rows, num_clients, at_once)
        self.moved, self.drawn = empty_table(2 * tickets), np.zeros(tickets, np.int64)
        self.out = np.empty(PACKED_BYTES + (4 + tickets) * LONGEST_ROW, np.uint8)
        self._works: dict[int, Work] = {}

    # ---- from the simulation ---------------------------------------------------------------------------------

    def load(self, numbers_of: Any) -> None:
        """Take over what is the case now; `numbers_of` a work are those that kernels read."""
        s, execution, server = self.state, self._execution, self._execution.server
        snapshot = server.snapshot()
        s.version, s.updates, s.now = execution.version, execution.updates, execution.now
        s.next_ticket, s.in_flight, s.inputs = server.next_ticket, server.in_flight, snapshot["inputs"]
        s.shortest = inf if snapshot["shortest"] is None else snapshot["shortest"]
        s.longest = snapshot["longest"]
        s.seq, s.work, s.model_bytes = execution.journal.next_seq, -1, execution.ledger.model_bytes
        strategy = snapshot["state"]
        s.merged_this_round = strategy.get("merged_this_round", 0)
        s.idle = len(server.idle)
        self.load_ledger()
        slot = 0
        for arrives, number, duration, energy, lost in self._clock.heap:
            dispatch = server.outstanding.get(number)
            if dispatch is None:
                continue  # a ticket that was given up
            self._fill(slot, dispatch, numbers_of, arrives, duration, energy, lost)
            push(self.heap, slot, self.slots, slot)
            slot += 1
        s.heap = slot
        counts = strategy.get("discounts", strategy.get("examples", ()))
        for number, weight in zip(strategy.get("tickets", ()), counts, strict=True):
            self._fill(slot, server.waiting[number], numbers_of, 0.0, 0.0, 0.0, False)
            self.slots[slot]["weight"], self.held[s.held] = weight, slot
            s.held += 1
            slot += 1
        s.free = len(self.slots) - slot
        self.free[: s.free] = np.arange(slot, len(self.slots))

    def _fill(
        self, slot: int, dispatch: Dispatch, numbers_of: Any, arrives: float, duration: float, energy: float, lost: bool
    ) -> None:
        vectors, client, ticket = self._execution.vectors, dispatch.client, self.slots[slot]
        model = vectors.trained.get(dispatch.ticket)
        ticket["ticket"], ticket["client"], ticket["version"] = dispatch.ticket, client, dispatch.base_version
        ticket["work"] = self.number_of(dispatch.work)
        ticket["is_lost"], ticket["is_trained"] = lost, model is not None
        ticket["arrives"], ticket["duration"], ticket["energy"] = arrives, duration, energy
        ticket["free_at"] = self._clock.free_at.get(client, 0.0)
        self.starts[slot], self.works[slot] = vectors.starts[dispatch.ticket], numbers_of(dispatch.work)
        if model is not None:
            self.models[slot] = model

    def number_of(self, work: Work) -> int:
        """The number under which tickets name this work."""
        if len(self._works) > 2 * len(self.slots) + 64:
            used = {*self.slots["work"].tolist(), self.state.work}
            self._works = {number: work for number, work in self._works.items() if number in used}
        number = next(reversed(self._works), -1)
        if number < 0 or self._works[number] is not work:
            number += 1
            self._works[number] = work
        return number

    def works_of(self, slots: Any) -> list[Work]:
        """The work of the ticket in each of these slots."""
        return [self._works[number] for number in self.slots["work"][slots].tolist()]

    def load_ledger(self) -> None:
        """Take over what the ledger has counted."""
        s, ledger = self.state, self._execution.ledger
        for theirs, ours in LEDGER_COUNTS.items():
            setattr(s, ours, getattr(ledger, theirs))

    # ---- to the simulation -----------------------------------------------------------------------------------

    def store_progress(self) -> None:
        """Let the run know how far it is: clock, version, model, journal and ledger, but no single ticket or client."""
        self.store_events()
        s, execution, server = self.state, self._execution, self._execution.server
        server.version, server.updates = execution.version, execution.updates
        execution.vectors.params = self.params.copy()
        for theirs, ours in LEDGER_COUNTS.items():
            setattr(execution.ledger, theirs, getattr(s, ours))

    def store_events(self) -> None:
        """Hand the events so far to the journal, with clock and version."""
        s, execution, journal = self.state, self._execution, self._execution.journal
        execution.now, execution.version, execution.updates = s.now, s.version, s.updates
        if s.packed:
            journal.append_packed(s.seq - journal.next_seq, self.out[: s.packed].data)
            s.packed = 0

    def store(self) -> None:
        """Give everything back: the run can then be saved, or stepped through from here."""
        self.store_progress()
        s, execution, server = self.state, self._execution, self._execution.server
        snapshot = server.snapshot()
        execution.ledger.merges_by_client = self.books.merges(s.participants)
        out = sorted(self.heap[: s.heap].tolist(), key=lambda slot: int(self.slots[slot]["ticket"]))
        held = self.held[: s.held].tolist()
        waiting = self.slots[held]
        weights = waiting["weight"]
        remembered = {
            "merged_this_round": s.merged_this_round,
            "tickets": waiting["ticket"].tolist(),
            "discounts": weights.tolist(),
            "examples": weights.astype(np.int64).tolist(),
        }
        server.restore(
            {
                **snapshot,
                "in_flight": [to_plain(self._dispatch(slot)) for slot in out],
                "waiting": [to_plain(self._dispatch(slot)) for slot in held],
                "idle": self.books.idle(s.idle),
                "next_ticket": s.next_ticket,
                "shortest": None if s.shortest == inf else s.shortest,
                "longest": s.longest,
                "inputs": s.inputs,
                "state": {name: remembered.get(name, value) for name, value in snapshot["state"].items()},
            }
        )
        execution.dispatches = {**server.outstanding, **server.waiting}
        self._store_vectors(sorted([*out, *held], key=lambda slot: int(self.slots[slot]["ticket"])))
        heap, free_at, training = self._clock
        heap[:] = [self._entry(slot) for slot in self.heap[: s.heap].tolist()]
        training.pending.clear()
        for slot in out:
            ticket = self.slots[slot]
            if not ticket["is_lost"]:
                free_at[int(ticket["client"])] = float(ticket["free_at"])
                if not ticket["is_trained"]:
                    training.pending[int(ticket["ticket"])] = server.outstanding[int(ticket["ticket"])]

    def _store_vectors(self, slots: Sequence[int]) -> None:
        vectors = self._execution.vectors
        tickets = self.slots["ticket"][slots].tolist()
        vectors.client_of = dict(zip(tickets, self.slots["client"][slots].tolist(), strict=True))
        for by_ticket, rows in ((vectors.starts, self.starts), (vectors.trained, self.models)):
            by_ticket.clear()
            for ticket, slot in zip(tickets, slots, strict=True):
                if rows is self.starts or self.slots[slot]["is_trained"]:
                    by_ticket[ticket] = rows[slot].copy()

    def _dispatch(self, slot: int) -> Dispatch:
        ticket = self.slots[slot]
        number, client, version = (int(ticket[name]) for name in ("ticket", "client", "version"))
        return Dispatch(number, client, version, self.works_of([slot])[0])

    def _entry(self, slot: int) -> HeapEntry:
        ticket = self.slots[slot]
        arrives, duration, energy = (float(ticket[name]) for name in ("arrives", "duration", "energy"))
        return arrives, int(ticket["ticket"]), duration, energy, bool(ticket["is_lost"])
