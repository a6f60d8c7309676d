"""Traces in FLASH's format: what phones logged of their battery, network and screen, read as when they can train."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.delays.delay_protocols import Array
from asyncfed.delays.presence_intervals import PresenceIntervals, RecordedPresence
from asyncfed.delays.trace_files import file_state, read_objects
from asyncfed.registry import register

DAY = 86400.0
TIME_FORMAT = "%Y-%m-%d %H:%M:%S"

STATES: dict[str, dict[str, bool]] = {
    "battery_charged_on": {"charging": True},
    "battery_charged_off": {"charging": False},
    "wifi": {"wifi": True},
    "unknown": {"wifi": False},
    "2g": {"wifi": False},
    "3g": {"wifi": False},
    "4g": {"wifi": False},
    "5g": {"wifi": False},
    "screen_on": {"screen_off": False},
    "screen_off": {"screen_off": True},
    "screen_lock": {"locked": True},
    "screen_unlock": {"locked": False},
    "phone_on": {},
    "phone_off": {"charging": False, "wifi": False, "screen_off": False, "locked": False},
    "battery_okay": {},
    "battery_low": {},
}
"""What each message says of a phone; a battery level, such as 87%, says nothing that is needed here."""


@register("availability")
class FlashAvailability(Config, tag_field="kind", tag="flash"):
    """When phones could train, from a file in the format of FLASH's `user_behavior_tiny.json`.

    The file is JSON, as a whole or with one object a line: phones, each with `messages`, a text of lines `2020-01-02
    08:15:00<tab>state`. A phone is present while it charges, has wifi, and its screen is off or locked; each of
    the three can be asked for or not. Before a message says so, none of them is true. Time 0 of a run is the midnight
    at which the file's first day begins; a phone's days repeat after its last one, so that nights stay nights. Client c
    is the c-th phone that is ever present, and they repeat.

    Args:
        file: the path.
        charging: whether a phone has to charge.
        wifi: whether it has to have wifi.
        idle: whether its screen has to be off or locked.

    Reference: Yang et al., "Characterizing Impacts of Heterogeneity in Federated Learning upon Large-Scale Smartphone
    Data", WWW 2021.
    """

    file: str
    charging: bool = True
    wifi: bool = True
    idle: bool = True

    def __post_init__(self) -> None:
        if not (self.charging or self.wifi or self.idle):
            raise ConfigError(
                "flash.charging, flash.wifi and flash.idle are all false, so phones would always be present. Leave the "
                "availability out instead."
            )

    def bind(self, num_clients: int, seed: int) -> RecordedPresence:
        """The phones of the file; neither the clients' number nor the seed changes them."""
        return _read(self.file, file_state(self.file), self.charging, self.wifi, self.idle)

    def mean_seconds(self, seconds: Array, seed: int) -> Array:
        """`seconds / share` of each client's phone: the mean for work begun at a random moment of presence."""
        return _read(self.file, file_state(self.file), self.charging, self.wifi, self.idle).mean_seconds(seconds)


class _Message(NamedTuple):
    time: datetime
    state: str


@lru_cache(maxsize=4)
def _read(path: str, state: tuple[int, int], charging: bool, wifi: bool, idle: bool) -> RecordedPresence:
    phones = [list(_messages(at, entry)) for at, entry in read_objects(path)]
    times = [message.time for messages in phones for message in messages]
    if not times:
        raise ConfigError(f"{path} has no messages of any phone; see FlashAvailability for the format.")
    midnight = datetime.combine(min(times).date(), datetime.min.time())
    found = [_presence(messages, midnight, charging, wifi, idle) for messages in phones if messages]
    return RecordedPresence(path, found)


def _messages(at: str, entry: Any) -> Iterator[_Message]:
    if not (isinstance(entry, dict) and isinstance(entry.get("messages"), str)):
        raise ConfigError(f'{at}: a phone is expected, an object with a text "messages".')
    for number, line in enumerate(entry["messages"].splitlines(), start=1):
        if not line.strip():
            continue
        time, tab, state = line.strip().partition("\t")
        where = f"{at}, line {number} of its messages"
        try:
            moment = datetime.strptime(time.strip(), TIME_FORMAT)
        except ValueError:
            raise ConfigError(f"{where}: {line!r} does not begin with a time such as 2020-01-02 08:15:00.") from None
        state = state.strip().lower()
        if not tab or not (state in STATES or state.endswith("%")):
            raise ConfigError(
                f"{where}: {line!r} has no known state after a tab; known are {', '.join(STATES)}, and "
                "levels such as 87%."
            )
        yield _Message(moment, state)


def _presence(
    messages: list[_Message], midnight: datetime, charging: bool, wifi: bool, idle: bool
) -> PresenceIntervals:
    """The intervals in which all that is asked for is true, of whole days that repeat."""
    known = {"charging": False, "wifi": False, "screen_off": False, "locked": False}
    intervals, since = [], None
    messages = sorted(messages, key=lambda message: message.time)  # of equal times, those of the file's order
    for time, state in messages:
        known |= STATES.get(state, {})
        ready = (
            (known["charging"] or not charging)
            and (known["wifi"] or not wifi)
            and (known["screen_off"] or known["locked"] or not idle)
        )
        if ready and since is None:
            since = time
        elif since is not None and not ready:
            intervals.append((since, time))
            since = None
    if since is not None:
        intervals.append((since, messages[-1].time))
    first = datetime.combine(messages[0].time.date(), datetime.min.time())
    period = DAY * max(1, ceil((messages[-1].time - first) / timedelta(seconds=DAY)))
    # A phone whose first day is later than the file's begins where its own days, repeated backwards, would be.
    offset = (first - midnight).total_seconds() % period
    seconds = [((b - first).total_seconds() + offset, (e - first).total_seconds() + offset) for b, e in intervals]
    return PresenceIntervals([piece for pair in seconds for piece in _wrapped(pair, period)], period)


def _wrapped(pair: tuple[float, float], period: float) -> list[tuple[float, float]]:
    """The interval within [0, period), cut where it passes the end."""
    begin, end = pair
    if end <= period:
        return [pair]
    if begin >= period:
        return [(begin - period, end - period)]
    return [(begin, period), (0.0, end - period)]
