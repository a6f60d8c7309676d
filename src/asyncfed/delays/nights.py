"""Nights: clients that are present while they charge at night, each by the clock of its time zone."""

from __future__ import annotations

from asyncfed.core.errors import ConfigError, DelayError
from asyncfed.core.random import purpose_key
from asyncfed.core.record import Config
from asyncfed.delays.checks import is_finite_number, require_non_negative, require_positive
from asyncfed.delays.delay_protocols import Array
from asyncfed.delays.keyed_draws import client_unit, keyed_unit
from asyncfed.registry import register

HOUR = 3600.0
DAY = 24.0
"""In hours."""

MOST_NIGHTS = 100_000
"""Nights are gone through one by one: work that needs more is refused."""

LATEST = 1e12
"""Seconds: much later, rounding would be felt."""


@register("availability")
class Nights(Config, tag_field="kind", tag="nights"):
    """A client is present for some hours every night, by the clock of its time zone.

    In the night of day d, counted from the midnight UTC before the run begins, client c is present

        from   24 d + begins + habit_c + a - zone_c     for   hours + b    hours

    `habit_c` is uniform within ±`habit`, drawn once per client; a and b are uniform within ±`jitter`, drawn for each
    client and night. A night is left out with probability `skipped`. Work pauses between the nights.

    Args:
        begins: the local time at which nights begin on average, in hours from 0 to below 24.
        hours: how long they last on average, above 0.
        jitter: how much beginning and length differ from night to night, in hours; 0 or more, at most `hours`, and
            hours + 3 * jitter at most 24, so that a night is over before the next begins.
        habit: how much the clients' own hours differ, in hours, 0 to 12.
        skipped: probability that a client does not charge in a night, 0 or more and below 1.
        zones: the time zones in hours from UTC, -12 to 14; a client's is drawn, all equally likely. Name one twice to
            double its share.
        starts_at: the hour UTC at which the run begins, 0 to below 24.

    >>> nights = Nights(begins=22.0, hours=8.0, jitter=0.0, habit=0.0, skipped=0.0, zones=(0.0,), starts_at=20.0)
    >>> nights.bind(num_clients=1, seed=0).finish(client=0, start=0.0, seconds=60.0) / 60.0  # two hours and a minute
    121.0
    """

    begins: float = 22.5
    hours: float = 7.5
    jitter: float = 1.0
    habit: float = 1.5
    skipped: float = 0.2
    zones: tuple[float, ...] = (0.0,)
    starts_at: float = 0.0

    def __post_init__(self) -> None:
        require_positive("nights.hours", self.hours)
        require_non_negative("nights.jitter", self.jitter)
        if self.jitter > self.hours or self.hours + 3 * self.jitter > DAY:
            raise ConfigError(
                f"nights.hours is {self.hours} and nights.jitter {self.jitter}; jitter must be at most hours, and "
                "hours + 3 * jitter at most 24, so that a night is over before the next begins. Lower jitter or hours."
            )
        for name, value in (("begins", self.begins), ("starts_at", self.starts_at)):
            if not (is_finite_number(value) and 0 <= value < DAY):
                raise ConfigError(f"nights.{name} is {value!r}; it must be an hour from 0 to below 24.")
        if not (is_finite_number(self.habit) and 0 <= self.habit <= 12):
            raise ConfigError(f"nights.habit is {self.habit!r}; it must be from 0 to 12 hours.")
        if not (is_finite_number(self.skipped) and 0 <= self.skipped < 1):
            raise ConfigError(
                f"nights.skipped is {self.skipped!r}; it must be 0 or more and below 1, else a client is never present."
            )
        if not self.zones:
            raise ConfigError("nights.zones is empty; name at least one, such as 0 for UTC.")
        for zone in self.zones:
            if not (is_finite_number(zone) and -12 <= zone <= 14):
                raise ConfigError(f"nights.zones has {zone!r}; time zones are from -12 to 14 hours from UTC.")

    def bind(self, num_clients: int, seed: int) -> BoundNights:
        """The nights of the clients of a run with this seed."""
        return BoundNights(self, seed)

    def mean_seconds(self, seconds: Array, seed: int) -> Array:
        """`seconds * 24 / (hours * (1 - skipped))`: the mean for work begun at a random moment of presence."""
        return seconds * (DAY / (self.hours * (1.0 - self.skipped)))


class BoundNights:
    """`Nights` of the clients of one run.

    Args:
        nights: the description.
        seed: the seed of the run.
    """

    def __init__(self, nights: Nights, seed: int) -> None:
        self._nights = nights
        self._longest = MOST_NIGHTS * nights.hours * HOUR * (1.0 - nights.skipped)
        self._zone_key = purpose_key(seed, "zone")
        self._habit_key = purpose_key(seed, "habit")
        self._begin_key = purpose_key(seed, "night begin")
        self._length_key = purpose_key(seed, "night length")
        self._skip_key = purpose_key(seed, "night skip")
        self._midnight: dict[int, float] = {}

    def finish(self, client: int, start: float, seconds: float) -> float:
        """The first moment by which this client has worked `seconds` in its nights since `start`.

        Work of 0 seconds is done at once, even by an absent client.
        """
        if seconds <= 0.0:
            return start
        if seconds > self._longest or start > LATEST:
            raise DelayError(
                f"client {client} is to work for {seconds:g} s from second {start:g} on, in its nights; the limits are "
                f"{self._longest:g} s, which are {MOST_NIGHTS:,} nights, and second {LATEST:g}. Lower the delays, or "
                "leave the availability out."
            )
        remaining, now = seconds, start
        day = int((start - self._first_night(client)) // (DAY * HOUR)) - 1
        while True:
            begin, end = self.night(client, day)
            now = max(now, begin)
            if end - now >= remaining:
                # Rounding must never let work end before it could have without a pause.
                return max(now + remaining, start + seconds)
            remaining -= max(0.0, end - now)
            day += 1

    def night(self, client: int, day: int) -> tuple[float, float]:
        """When the client's night of this day begins and ends, in seconds of the run; of no length if it is skipped."""
        nights = self._nights
        drawn = 2.0 * keyed_unit(self._begin_key, client, day) - 1.0
        begin = self._first_night(client) + (DAY * day + nights.jitter * drawn) * HOUR
        if keyed_unit(self._skip_key, client, day) < nights.skipped:
            return begin, begin
        drawn = 2.0 * keyed_unit(self._length_key, client, day) - 1.0
        return begin, begin + (nights.hours + nights.jitter * drawn) * HOUR

    def _first_night(self, client: int) -> float:
        """When the night of day 0 begins on average, in seconds of the run."""
        known = self._midnight.get(client)
        if known is None:
            nights = self._nights
            zone = nights.zones[int(client_unit(self._zone_key, client) * len(nights.zones))]
            habit = nights.habit * (2.0 * client_unit(self._habit_key, client) - 1.0)
            known = self._midnight[client] = (nights.begins + habit - zone - nights.starts_at) * HOUR
        return known
