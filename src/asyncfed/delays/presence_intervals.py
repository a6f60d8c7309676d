"""Recorded intervals of presence, repeated for ever, and the clients that have them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import ceil

import numpy as np

from asyncfed.core.errors import ConfigError, DelayError
from asyncfed.delays.delay_protocols import Array

MOST_PERIODS = 1e12
"""So often a trace can be repeated before rounding blurs it."""


class PresenceIntervals:
    """A device is present in these intervals of [0, period), and in those of every later period.

    Args:
        intervals: (begin, end) in seconds, 0 <= begin <= end <= period, in any order; those that overlap are joined.
        period: seconds after which they repeat, above 0.

    >>> device = PresenceIntervals([(10.0, 20.0), (50.0, 60.0)], period=100.0)
    >>> device.finish(0.0, 15.0), device.finish(55.0, 10.0), device.share
    (55.0, 115.0, 0.2)
    """

    def __init__(self, intervals: Iterable[tuple[float, float]], period: float) -> None:
        begins: list[float] = []
        ends: list[float] = []
        for begin, end in sorted(intervals):
            if ends and begin <= ends[-1]:
                ends[-1] = max(ends[-1], end)
            elif end > begin:
                begins.append(begin)
                ends.append(end)
        self._period = period
        self._begins = begins
        self._ends = ends
        self._worked = [0.0, *accumulate(end - begin for begin, end in zip(begins, ends, strict=True))]

    @property
    def share(self) -> float:
        """The part of the time in which the device is present."""
        return self._worked[-1] / self._period

    def finish(self, start: float, seconds: float) -> float:
        """When the device has worked `seconds` in its intervals since `start`. It must be present at some time."""
        if seconds <= 0.0:
            return start
        if start + seconds > MOST_PERIODS * self._period:
            raise DelayError(
                f"a device is to work for {seconds:g} s from second {start:g} on, which is beyond {MOST_PERIODS:g} "
                f"times the {self._period:g} s of its trace. Lower the delays, or leave the availability out."
            )
        periods, into = divmod(start, self._period)
        place = bisect_right(self._begins, into) - 1
        before = 0.0
        if place >= 0:
            before = self._worked[place] + min(into, self._ends[place]) - self._begins[place]
        total = self._worked[-1]
        needed = before + seconds
        whole = ceil(needed / total) - 1
        rest = min(max(0.0, needed - whole * total), total)
        # The interval in which the rest is reached: work that ends with an interval ends there.
        place = max(1, bisect_left(self._worked, rest)) - 1
        place = min(place, len(self._begins) - 1)
        done = (periods + whole) * self._period + self._begins[place] + (rest - self._worked[place])
        # Rounding must never let work end before it could have without a pause.
        return max(done, start + seconds)


class RecordedPresence:
    """The devices of a trace as a `PresenceModel`: client c is device c, and they repeat.

    Devices that are never present are left out: what they are given would never be done.

    Args:
        source: the file, named in the message if nobody is ever present.
        devices: the recorded devices.
    """

    def __init__(self, source: str, devices: Sequence[PresenceIntervals]) -> None:
        self.devices = [device for device in devices if device.share > 0.0]
        if not self.devices:
            raise ConfigError(f"{source} has no device that is ever present, so no work would ever be done.")

    def finish(self, client: int, start: float, seconds: float) -> float:
        """When this client's device has worked `seconds` in its intervals since `start`."""
        return self.devices[client % len(self.devices)].finish(start, seconds)

    def mean_seconds(self, seconds: Array) -> Array:
        """`seconds / share` of each client's device: the mean for work begun at a random moment of presence."""
        shares: Array = np.resize([device.share for device in self.devices], len(seconds))
        return seconds / shares
