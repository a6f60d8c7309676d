"""All runs of a folder as they are now: looked at in one place, however many people watch."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

from asyncfed.core.errors import JournalError
from asyncfed.dashboard.run_card import make_card
from asyncfed.dashboard.run_folder import NoSuchRunError, RunFolder
from asyncfed.dashboard.run_state import Signature, file_signature, find_state
from asyncfed.dashboard.run_view import RunView

MOST_VIEWS = 24
"""Runs whose events are held in memory, a hundred bytes a ticket; the one not asked for longest is given up first."""

FOLLOWED_SECONDS = 60.0
"""A run that nobody asked for in this time is no longer followed."""

STALE_SECONDS = 10.0
"""Longer than between two looks at a followed run: what was not looked at for so long is read before it is shown."""

SCAN_SHARE, LONGEST_PAUSE = 20.0, 5.0
"""A folder of thousands of runs is looked at so seldom that it takes a twentieth of the time, but every 5 s."""

TICK_SECONDS = 2.0
"""A running live run is shown anew after this time even if nothing was written: who is silent depends on the clock."""


class RunWatch:
    """Cards of all runs, views of those somebody looks at.

    Args:
        folder: where the runs are.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.change = 0
        """Goes up whenever a run appears, vanishes, or its card is another."""
        self._cards: dict[str, dict[str, Any]] = {}
        self._signatures: dict[str, Signature] = {}
        self._views: OrderedDict[str, RunView] = OrderedDict()
        self._asked: dict[str, float] = {}
        self._read: dict[str, tuple[Signature, float]] = {}
        self._looked_at: dict[str, float] = {}
        self._next_scan = 0.0
        self._lock = threading.RLock()

    def cards(self) -> list[dict[str, Any]]:
        """The runs of the folder, by name."""
        with self._lock:
            if not self._signatures:
                self.look()
            return [self._cards[name] for name in sorted(self._cards)]

    def card(self, name: str) -> dict[str, Any]:
        """One run's card.

        Raises:
            NoSuchRunError: there is none.
        """
        path = self.folder.find(name)
        with self._lock:
            found = self._cards.get(name)
            return found if found is not None else make_card(name, path)

    def followed(self, name: str) -> RunView | None:
        """The run with its events, if it is being followed: then nothing has to be read. None otherwise."""
        with self._lock:
            view = self._views.get(name)
            read = self._looked_at.get(name)
            now = time.monotonic()
            if view is None or read is None or now - read > STALE_SECONDS:
                return None
            self._asked[name] = now
            return view

    def view(self, name: str) -> RunView:
        """The run with its events, as it was when last looked at; read now if nobody has asked for it before.

        Raises:
            NoSuchRunError: there is none.
            JournalError: it cannot be read.
        """
        path = self.folder.find(name)
        with self._lock:
            view = self._views.get(name)
            if view is None:
                view = self._views[name] = RunView(name, path)
            self._views.move_to_end(name)
            self._asked[name] = time.monotonic()
            while len(self._views) > MOST_VIEWS:
                self._forget(next(iter(self._views)))
        with view.lock:
            if time.monotonic() - self._looked_at.get(name, -STALE_SECONDS) >= STALE_SECONDS:
                self._refresh(view)
        return view

    def _refresh(self, view: RunView) -> None:
        """Read what is new, if anything was written or may have ended."""
        with view.lock:
            signature, now = file_signature(view.path), time.monotonic()
            known, when = self._read.get(view.name, (None, 0.0))
            is_running = view.state.state == "running"
            if signature != known or is_running:
                try:
                    changed = view.refresh()
                except JournalError:
                    self._forget(view.name)
                    raise
                if not changed and is_running and view.kind != "simulated" and now - when >= TICK_SECONDS:
                    view.tick()
                    changed = True
                if changed or known is None:
                    self._read[view.name] = (signature, now)
            self._looked_at[view.name] = now

    def _forget(self, name: str) -> None:
        with self._lock:
            for known in (self._views, self._read, self._looked_at, self._asked):
                known.pop(name, None)

    def look(self) -> None:
        """Look at everything once: which runs there are, which have changed, what is new in those that are followed."""
        begun = time.monotonic()
        with self._lock:
            self._look_at_folder()
        ended = time.monotonic()
        self._next_scan = ended + min(SCAN_SHARE * (ended - begun), LONGEST_PAUSE)
        self.follow()

    def look_if_due(self) -> None:
        """Look at the runs that are followed, and at the folder, too, unless that took long a moment ago."""
        if time.monotonic() >= self._next_scan:
            self.look()
        else:
            self.follow()

    def follow(self) -> None:
        """Read what is new in the runs that somebody asked for lately."""
        with self._lock:
            since = time.monotonic() - FOLLOWED_SECONDS
            followed = [view for name, view in self._views.items() if self._asked.get(name, 0.0) >= since]
        for view in followed:
            try:
                self.folder.find(view.name)
                self._refresh(view)
            except (JournalError, NoSuchRunError):
                self._forget(view.name)

    def _look_at_folder(self) -> None:
        paths = self.folder.paths()
        for name in self._cards.keys() - paths.keys():
            del self._cards[name], self._signatures[name]
            self._forget(name)
            self.change += 1
        for name, path in paths.items():
            signature = file_signature(path)
            card = self._cards.get(name)
            if card is None or signature != self._signatures[name] or self._has_ended(path, card):
                self._signatures[name] = signature
                self._cards[name] = make_card(name, path)
                self.change += 1

    def _has_ended(self, path: Path, card: dict[str, Any]) -> bool:
        """Whether nobody writes a run any more that was being written: a killed process changes no file."""
        if card["state"] != "running":
            return False
        return find_state(path, {"verdict": "interrupted"}, card["schema_version"]).state != "running"
