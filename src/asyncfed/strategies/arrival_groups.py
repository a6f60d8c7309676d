"""Groups of clients that are to arrive together: which one a client joins, and for how many local steps.

Used by FedCompass. Speeds are in seconds per step, moments in seconds of the run's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

from asyncfed.core.record import Record

ROUNDING = 1e-6
"""So much of a step may be missing: what is exactly so many steps away must not become one step less by rounding."""


class Held(Record):
    """An update that waits to be merged."""

    ticket: int
    client: int
    base_version: int


class Group(Record):
    """Clients that are to arrive together.

    `expected` and `latest` are when it is to arrive and when it is merged at the latest, None until they are known;
    `out` are the clients still at work, `arrived` the updates of the others.
    """

    number: int
    expected: float | None
    latest: float | None
    out: tuple[int, ...]
    arrived: tuple[Held, ...] = ()


def steps_within(seconds: float, speed: float, most: int) -> int:
    """How many steps fit into so many seconds, 0 or more; above `most` it is `most + 1`.

    >>> steps_within(10.0, 0.25, 100), steps_within(10.0, 0.05, 100), steps_within(0.3, 0.1, 100)
    (40, 101, 3)
    """
    if seconds < 0:
        return 0
    return floor(seconds / speed + ROUNDING) if seconds < (most + 1) * speed else most + 1


def choose_group(groups: Sequence[Group], now: float, speed: float, fewest: int, most: int) -> tuple[int, int]:
    """The place of the group in which a client can make most steps, from `fewest` to `most`, and how many.

    (-1, 0) if there is none.

    >>> choose_group([Group(1, 5.0, 9.0, (0,)), Group(2, 8.0, 9.0, (1,))], now=2.0, speed=0.1, fewest=20, most=100)
    (1, 60)
    """
    best, steps = -1, 0
    for place, group in enumerate(groups):
        fit = 0 if group.expected is None else steps_within(group.expected - now, speed, most)
        if max(steps + 1, fewest) <= fit <= most:
            best, steps = place, fit
    return best, steps


def steps_of_new_group(
    groups: Sequence[Group], now: float, speed: float, speeds: Sequence[float], fewest: int, most: int
) -> int:
    """The steps of a client that opens a group: so many that those of an open group g can join after g is merged.

        largest floor((latest_g + most * fastest_g - now) / speed) up to `most`; at least `fewest`; `most` if none

    >>> steps_of_new_group([Group(1, 5.0, 8.0, (0,))], now=2.0, speed=0.2, speeds=[0.01], fewest=20, most=100)
    35
    """
    options = []
    for group in groups:
        members = [*group.out, *(held.client for held in group.arrived)]
        known = [v for v in (known_speed(speeds, client) for client in members) if v is not None]
        if group.latest is not None and now < group.latest and known:
            options.append(steps_within(group.latest + most * min(known) - now, speed, most))
    return max(fewest, max((q for q in options if q <= most), default=most))


def known_speed(speeds: Sequence[float], client: int) -> float | None:
    """Seconds per step of this client; None, written as -1, if it has never reported."""
    return speeds[client] if client < len(speeds) and speeds[client] >= 0.0 else None
