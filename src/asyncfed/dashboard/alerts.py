"""Alerts: rules checked against the runs that are running; each is told once, until it is no longer met."""

from __future__ import annotations

import logging
import shutil
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from asyncfed.core.errors import JournalError
from asyncfed.dashboard.alert_rules import Rule, find_reason
from asyncfed.dashboard.client_numbers import client_numbers
from asyncfed.dashboard.run_folder import NoSuchRunError
from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.run_watch import RunWatch
from asyncfed.store.error_messages import explain_damage

log = logging.getLogger("asyncfed.dashboard")

CHECK_SECONDS = 5.0
MOST_FIRED = 200
MOST_CHECKED = 16
"""Running runs that are followed for their alerts."""


class Alerts:
    """Checks the rules and keeps the last alerts.

    Args:
        watch: the runs.
        rules: what is checked.
        tell: called with every new alert; it must not block.
    """

    def __init__(
        self, watch: RunWatch, rules: tuple[Rule, ...], tell: Callable[[dict[str, Any]], None] | None = None
    ) -> None:
        self.rules = rules
        self.fired: deque[dict[str, Any]] = deque(maxlen=MOST_FIRED)
        self.count = 0
        self._watch = watch
        self._tell = tell
        self._met: set[tuple[str, str]] = set()
        self._merges: dict[str, tuple[int, float]] = {}
        self._checked = 0.0

    def check_if_due(self) -> None:
        """Check all rules, unless that was done a moment ago."""
        if time.monotonic() - self._checked >= CHECK_SECONDS:
            self._checked = time.monotonic()
            self.check()

    def since(self, count: int) -> list[dict[str, Any]]:
        """The alerts after the first `count`, as far as they are kept."""
        new = self.count - count
        return list(self.fired)[-new:] if new > 0 else []

    def check(self) -> None:
        """Check all rules of all running runs now."""
        running = [card["id"] for card in self._watch.cards() if card["state"] == "running"][:MOST_CHECKED]
        for name in running:
            try:
                view = self._watch.view(name)
                with explain_damage(view.path, "row"):
                    self._check_run(view)
            except (JournalError, NoSuchRunError):
                continue  # the list of runs says what is wrong with it
        self._met = {(kind, name) for kind, name in self._met if name in running}
        self._merges = {name: merges for name, merges in self._merges.items() if name in running}

    def _check_run(self, view: RunView) -> None:
        waited, free = self._since_update(view), _free_disk(view)
        for rule in self.rules:
            reason = find_reason(rule, view, waited, free)
            key = (rule.kind, view.name)
            if reason is None:
                self._met.discard(key)
            elif key not in self._met:
                self._met.add(key)
                self._fire(rule, view, reason)

    def _fire(self, rule: Rule, view: RunView, reason: str) -> None:
        alert = {"rule": rule.kind, "run": view.name, "text": reason, "time": time.time()}
        self.fired.append(alert)
        self.count += 1
        log.warning("alert: %s: %s", view.name, reason)
        if self._tell is not None:
            self._tell(alert)

    def _since_update(self, view: RunView) -> float:
        """Seconds on the wall since the number of merged updates last grew, as far as this dashboard has seen."""
        merged, now = int(client_numbers(view).merged.sum()), time.monotonic()
        count, since = self._merges.get(view.name, (-1, now))
        if merged != count:
            self._merges[view.name] = (merged, now)
            return 0.0
        return now - since


def _free_disk(view: RunView) -> float:
    try:
        usage = shutil.disk_usage(view.path.parent)
    except OSError:
        return 1.0
    return usage.free / max(usage.total, 1)
