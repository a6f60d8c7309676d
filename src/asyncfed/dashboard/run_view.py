"""One run as it is now: what its file held when it was last looked at, in tables that panels are made of."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from asyncfed.analysis.filtered_updates import FILTERED
from asyncfed.dashboard.run_state import RunState, find_state, kind_of_run
from asyncfed.dashboard.ticket_table import TicketTable
from asyncfed.kernels.event_columns import EventColumns, read_event_columns
from asyncfed.store.error_messages import explain_damage
from asyncfed.store.header import MOST_CLIENTS
from asyncfed.store.journal_tail import JournalTail, Row
from asyncfed.store.schema import EVALUATION_COLUMNS, ROUND_COLUMNS

T = TypeVar("T")

_serials = count()
"""So that an answer kept about one view is never taken for one about another of the same run."""

LONGEST_NAME = 200
"""Characters of a client's name that are shown."""


class RunView:
    """Shared by all who watch a run: the file is read once, however many they are.

    `change` goes up whenever something is new. `lock` is held while the tables grow; whoever computes from them takes
    it, too.

    Args:
        name: the run's name in addresses.
        path: its file.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.serial = next(_serials)
        self.name = name
        self.path = path
        self.state = RunState("interrupted", None)
        self.lock = threading.RLock()
        self.change = 0
        self.header: dict[str, Any] = {}
        self._tail = JournalTail(path)
        self._computed: dict[str, tuple[int, Any]] = {}
        self._clear()

    def _clear(self) -> None:
        self.tickets = TicketTable()
        self.texts: dict[int, str] = {}
        self.rounds: list[Row] = []
        self.evaluations: list[Row] = []
        self._measured: list[dict[str, Any]] = []
        self._lasting: dict[str, Any] = {}
        self._num_clients = 0
        self._memory_texts: list[int] = []
        self._filtered: list[int] = []
        self._heard_at = time.monotonic()

    def refresh(self) -> bool:
        """Read what is new. Returns whether anything is.

        Raises:
            JournalError: the file is gone or damaged.
        """
        changed, more = False, True
        with self.lock:
            while more:
                new = self._tail.read()
                if new.restarted:
                    self._clear()
                changed |= bool(new.restarted or new.num_events or new.evaluations or new.header != self.header)
                self.header, more = new.header, new.more
                self.texts.update(new.details)
                with explain_damage(self.path, "detail of an event"):
                    self._search_texts(new.details)
                with explain_damage(self.path, "block of events"):
                    events = read_event_columns(new.events, new.num_events)
                    self._check_numbers(events)
                    self.tickets.add(events, self.texts)
                if new.num_events:
                    self._heard_at = time.monotonic()
                self.rounds += new.rounds
                self.evaluations += new.evaluations
                with explain_damage(self.path, "measurement"):
                    self._measured += [_metrics(row[-1]) for row in new.evaluations]
            state = find_state(self.path, self.header, self._tail.schema_version)
            changed |= state != self.state
            self.state = state
            self.change += changed
        return changed

    def once(self, what: str, compute: Callable[[], T]) -> T:
        """What `compute` gives, computed once for as long as it is the same run."""
        with self.lock:
            if what not in self._lasting:
                self._lasting[what] = compute()
            found: T = self._lasting[what]
            return found

    def computed(self, what: str, compute: Callable[[], T]) -> T:
        """What `compute` gives, computed once for as long as nothing is new."""
        with self.lock:
            found = self._computed.get(what)
            if found is None or found[0] != self.change:
                found = self._computed[what] = (self.change, compute())
            return found[1]

    def _search_texts(self, details: list[tuple[int, str]]) -> None:
        """Most texts are read by nobody; of these two kinds are counted."""
        for number, text in details:
            if FILTERED in text:
                info = json.loads(text).get("info", {})
                self._filtered += [int(name.removeprefix(FILTERED)) for name in info if name.startswith(FILTERED)]
            elif '"memory"' in text:
                table = json.loads(text)
                if isinstance(table, dict) and table.get("memory") == -1:
                    self._memory_texts.append(number)

    @property
    def memory_lost(self) -> np.ndarray:
        """The tickets whose clients had lost what they remember, and began anew."""
        if not self._memory_texts:
            return np.empty(0, np.int64)
        return self.computed("memory lost", lambda: np.flatnonzero(np.isin(self.tickets["detail"], self._memory_texts)))

    @property
    def filtered(self) -> np.ndarray:
        """By client, how many of its updates the strategy's rule filtered."""
        tickets = np.array(self._filtered, np.int64)
        known = tickets[(tickets >= 0) & (tickets < self.tickets.count)]
        return np.bincount(self.tickets["client"][known], minlength=self.num_clients)

    def text(self, number: int) -> str | None:
        """The text of a detail that is a plain reason; None if there is none."""
        text = self.texts.get(number)
        if text is None:
            return None
        value = json.loads(text)
        return value if isinstance(value, str) else text

    def round_column(self, name: str) -> np.ndarray:
        """A column of the table of rounds."""
        place = ROUND_COLUMNS.index(name)
        return np.array([row[place] for row in self.rounds], np.float64)

    def evaluation_column(self, name: str) -> np.ndarray:
        """A column of the table of evaluations, other than what was measured."""
        place = EVALUATION_COLUMNS.index(name)
        return np.array([row[place] for row in self.evaluations], np.float64)

    def metrics(self) -> dict[str, np.ndarray]:
        """What was measured, by name; NaN where it was not."""
        rows = self._measured
        names = dict.fromkeys(name for row in rows for name in row)
        return {
            name: np.array([np.nan if row.get(name) is None else row[name] for row in rows], np.float64)
            for name in names
        }

    def _check_numbers(self, events: EventColumns) -> None:
        """Refuse numbers for which tables would fill the memory: only a damaged or forged file has them."""
        if len(events.seq):
            if int(events.ticket.max()) > int(events.seq[-1]):
                raise ValueError(f"ticket {events.ticket.max()} is above the number of events")
            last = int(events.client.max())
            if last >= MOST_CLIENTS or int(events.client.min()) < -1 or int(events.ticket.min()) < -1:
                raise ValueError(f"client {last} is none")
            self._num_clients = max(self._num_clients, last + 1)

    @property
    def num_clients(self) -> int:
        """How many clients the run has, those never heard from and those that came later included."""
        return max(int(self.header["num_clients"]), self._num_clients)

    @property
    def kind(self) -> str:
        """simulated, live, flower or ray."""
        return kind_of_run(self.header)

    @property
    def now(self) -> float:
        """The run's clock: of a live run that is running it goes on between events."""
        if self.kind == "simulated" or self.state.state != "running":
            return self.tickets.now
        return self.tickets.now + time.monotonic() - self._heard_at

    def tick(self) -> None:
        """Count the passing of time as a change: of a running live run, who is silent depends on it."""
        self.change += 1

    def client_name(self, client: int) -> str:
        """What the client is called: its number, where it has no name."""
        names = self.header.get("client_names")
        if isinstance(names, list) and 0 <= client < len(names):
            return str(names[client])[:LONGEST_NAME]
        return str(client)


def _metrics(text: str) -> dict[str, Any]:
    measured = json.loads(text)
    if not isinstance(measured, dict):
        raise ValueError("it is no table of numbers")
    return measured
