"""One run as it is now: what its file held when it was last looked at, in tables that panels are made of."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np

from asyncfed.dashboard.ticket_table import TicketTable
from asyncfed.kernels.event_columns import read_event_columns
from asyncfed.store.journal_tail import JournalTail, Row
from asyncfed.store.schema import EVALUATION_COLUMNS, ROUND_COLUMNS


class RunView:
    """Shared by all who watch a run: the file is read once, however many they are.

    `change` goes up whenever something is new. `lock` is held while the tables grow; whoever computes from them takes
    it, too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.change = 0
        self.header: dict[str, Any] = {}
        self._tail = JournalTail(path)
        self._clear()

    def _clear(self) -> None:
        self.tickets = TicketTable()
        self.texts: dict[int, str] = {}
        self.rounds: list[Row] = []
        self.evaluations: list[Row] = []

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
                self.tickets.add(read_event_columns(new.events, new.num_events), self.texts)
                self.rounds += new.rounds
                self.evaluations += new.evaluations
            self.change += changed
        return changed

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
        rows = [json.loads(row[-1]) for row in self.evaluations]
        names = dict.fromkeys(name for row in rows for name in row)
        return {
            name: np.array([np.nan if row.get(name) is None else row[name] for row in rows], np.float64)
            for name in names
        }

    @property
    def num_clients(self) -> int:
        """How many clients the run has, those never heard from included."""
        return int(self.header["num_clients"])

    def client_name(self, client: int) -> str:
        """What the client is called: its number, where it has no name."""
        names = self.header.get("client_names")
        return str(names[client]) if names and 0 <= client < len(names) else str(client)
