"""Rules that say when somebody is to be told: read from TOML, or those that everybody needs."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.dashboard.client_numbers import SET_ASIDE, client_numbers
from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.warnings_of_run import left_out_clients


@dataclass(frozen=True)
class Rule:
    """A rule: what it looks at and from which value on it is met.

    Args:
        kind: `no_update` (seconds without a merged update), `loss_rising` (so many evaluations in a row above the one
            before), `set_aside` (so many clients or more), `left_out` (so many clients or more), `disk_full` (a smaller
            share of the disk is free).
        limit: the value, in the unit of the kind.
    """

    kind: str
    limit: float

    @property
    def text(self) -> str:
        """The rule in words."""
        return TEXTS[self.kind].format(limit=self.limit)


TEXTS = {
    "no_update": "no update was merged for {limit:g} s",
    "loss_rising": "the loss rose at {limit:g} evaluations in a row",
    "set_aside": "{limit:g} or more clients are set aside for their faults",
    "left_out": "of {limit:g} or more clients nothing was merged although others had their chance",
    "disk_full": "less than {limit:.0%} of the disk is free",
}

DEFAULTS = (
    Rule("no_update", 600.0),
    Rule("loss_rising", 5.0),
    Rule("set_aside", 1.0),
    Rule("left_out", 1.0),
    Rule("disk_full", 0.05),
)


def read_rules(path: Path | None) -> tuple[Rule, ...]:
    """The rules of a file, in which each line such as `no_update = 600` sets a limit and `false` leaves a rule out.

    Rules that the file does not name are those of `DEFAULTS`.

    Raises:
        ConfigError: the file cannot be read, or names what is no rule.
    """
    if path is None:
        return DEFAULTS
    try:
        given = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"The rules in {path} cannot be read ({error}).") from error
    limits: dict[str, Any] = {rule.kind: rule.limit for rule in DEFAULTS}
    for kind, limit in given.items():
        if kind not in limits:
            raise ConfigError(f'{path} has a rule "{kind}", which there is not. {did_you_mean(kind, list(limits))}')
        is_number = isinstance(limit, int | float) and not isinstance(limit, bool) and limit > 0
        if limit is not False and not is_number:
            raise ConfigError(f"{path}: {kind} is {limit!r}; it must be a positive number, or false for no such rule.")
        limits[kind] = limit
    return tuple(Rule(kind, float(limit)) for kind, limit in limits.items() if limit is not False)


def find_reason(rule: Rule, view: RunView, since_update: float, free_disk: float) -> str | None:
    """Why a rule is met by a running run, in words; None if it is not.

    Args:
        rule: the rule.
        view: the run.
        since_update: seconds since an update was last merged, by the clock on the wall.
        free_disk: the share of the disk that is free.
    """
    if rule.kind == "no_update":
        return f"No update was merged for {since_update:.0f} s." if since_update >= rule.limit else None
    if rule.kind == "disk_full":
        return f"{free_disk:.1%} of the disk is free." if free_disk < rule.limit else None
    return CHECKS[rule.kind](view, rule.limit)


def _loss_rises(view: RunView, limit: float) -> str | None:
    measured = view.metrics()
    values = measured.get("objective", next(iter(measured.values()), np.empty(0)))
    last = values[-int(limit) - 1 :]
    if len(last) > limit and bool((np.diff(last) > 0).all()):
        return f"The loss rose {int(limit)} times in a row, from {last[0]:.4g} to {last[-1]:.4g}."
    return None


def _are_set_aside(view: RunView, limit: float) -> str | None:
    clients = np.flatnonzero(client_numbers(view).state == SET_ASIDE).tolist()
    return f"Set aside for faults: {_names(view, clients)}." if len(clients) >= limit else None


def _are_left_out(view: RunView, limit: float) -> str | None:
    clients = [row["client"] for row in left_out_clients(view)]
    return f"Nothing was merged of {_names(view, clients)}." if len(clients) >= limit else None


def _names(view: RunView, clients: list[int]) -> str:
    shown = ", ".join(f"client {view.client_name(client)}" for client in clients[:5])
    return shown + (f" and {len(clients) - 5} more" if len(clients) > 5 else "")


CHECKS: dict[str, Callable[[RunView, float], str | None]] = {
    "loss_rising": _loss_rises,
    "set_aside": _are_set_aside,
    "left_out": _are_left_out,
}
