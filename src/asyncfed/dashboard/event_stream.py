"""Server-sent events: which runs have changed, so that pages ask for what they show."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from asyncfed.core.errors import JournalError
from asyncfed.dashboard.access import Viewer
from asyncfed.dashboard.alerts import Alerts
from asyncfed.dashboard.client_numbers import client_numbers
from asyncfed.dashboard.plain_numbers import as_number
from asyncfed.dashboard.run_folder import NoSuchRunError
from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.run_watch import RunWatch
from asyncfed.store.error_messages import explain_damage

log = logging.getLogger("asyncfed.dashboard")

LEAST_INTERVAL, MOST_INTERVAL = 0.5, 3.0
"""Seconds between two looks at the runs: with one reader, and with very many."""

READERS_PER_INTERVAL = 10
"""So many readers more make the interval longer by its least: all of them together ask for no more than a few do."""

SILENCE_SECONDS = 15.0
"""After so long without an event a comment is sent, so that nothing between here and the page hangs up."""

MOST_STREAMS = 500


class ChangeStream:
    """Looks at the runs at intervals and wakes everybody who waits for changes.

    Args:
        watch: the runs.
        alerts: checked after each look.
    """

    def __init__(self, watch: RunWatch, alerts: Alerts) -> None:
        self.watch = watch
        self.alerts = alerts
        self.readers = 0
        self._wakes: set[asyncio.Event] = set()
        self._is_closed = False
        self._messages: dict[tuple[str, int | None], dict[str, Any]] = {}

    def close(self) -> None:
        """End all streams: nobody is told anything any more."""
        self._is_closed = True
        for wake in self._wakes:
            wake.set()

    @property
    def interval(self) -> float:
        """Seconds until the next look."""
        return min(MOST_INTERVAL, LEAST_INTERVAL * (1 + self.readers // READERS_PER_INTERVAL))

    async def look_for_ever(self) -> None:
        """Look at the runs until cancelled."""
        while True:
            try:
                await asyncio.to_thread(self.watch.look_if_due)
                await asyncio.to_thread(self.alerts.check_if_due)
            except Exception:  # a file that nobody foresaw must not end the looking at all others
                log.exception("the runs could not be looked at; it is tried again")
            self._messages.clear()
            for wake in self._wakes:
                wake.set()
            await asyncio.sleep(self.interval)

    async def events(self, names: list[str], viewer: Viewer) -> AsyncIterator[str]:
        """What one page is sent: changes of these runs, and whether the folder changed; none: only the folder."""
        wake = asyncio.Event()
        self._wakes.add(wake)
        self.readers += 1
        sent: dict[str, int] = {}
        folder, alerts = self.watch.change, self.alerts.count
        yield "retry: 2000\n\n"
        try:
            while not self._is_closed:
                for name in names:
                    message = self._messages.get((name, viewer.client))
                    message = message or await asyncio.to_thread(self._message, name, viewer.client)
                    if message is not None and sent.get(name) != message["change"]:
                        sent[name] = message["change"]
                        yield _event("change", message)
                if self.watch.change != folder and not viewer.is_site:
                    folder = self.watch.change
                    yield _event("folder", {"change": folder})
                for alert in self.alerts.since(alerts) if not viewer.is_site else ():
                    yield _event("alert", alert)
                alerts = self.alerts.count
                wake.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(SILENCE_SECONDS):
                        await wake.wait()
                        continue
                yield ": still here\n\n"
        finally:
            self._wakes.discard(wake)
            self.readers -= 1

    def _message(self, name: str, client: int | None) -> dict[str, Any] | None:
        """What is sent about a run after this look: the same to all who watch it."""
        try:
            view = self.watch.view(name)
            with explain_damage(view.path, "row"):
                message = self._messages[name, client] = change_message(view, client)
        except (NoSuchRunError, JournalError):
            return None
        return message


def change_message(view: RunView, client: int | None) -> dict[str, Any]:
    """What changed in a run, in few words; for a site, with its own numbers."""
    with view.lock:
        numbers = client_numbers(view)
        chosen = slice(None) if client is None else slice(client, client + 1)
        return {
            "id": view.name,
            "change": view.change,
            "state": view.state.state,
            "now": as_number(view.now),
            "rounds": int(view.rounds[-1][0]) if view.rounds else 0,
            "updates": int(numbers.merged[chosen].sum()),
            "in_flight": int(numbers.in_flight[chosen].sum()),
        }


def _event(kind: str, data: dict[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(data, allow_nan=False)}\n\n"
