"""Availability: clients that are present part of each period, and whose work pauses while they are absent."""

from __future__ import annotations

from math import ceil

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import purpose_key
from asyncfed.core.record import Config
from asyncfed.delays.checks import is_finite_number, require_positive
from asyncfed.delays.client_traits import MOST_LISTED, Computed, Trait, shared_trait
from asyncfed.delays.delay_protocols import Array
from asyncfed.delays.keyed_draws import client_unit, client_units


class Availability(Config):
    """A client is present during `[phase + k*period, phase + (k + on_fraction)*period)` for every whole k.

    Args:
        period: seconds, above 0.
        on_fraction: the part of each period in which the client is present, above 0 and at most 1.
        random_phase: True: each client has its own phase, uniform over a period. False: the phase of all is 0, so that
            all are present at time 0.

    >>> nights = Availability(period=24.0, on_fraction=0.25, random_phase=False)
    >>> nights.finish(start=5.0, seconds=3.0, phase=0.0)  # one hour until 6, two more from 24
    26.0
    """

    period: float
    on_fraction: float
    random_phase: bool = True

    def __post_init__(self) -> None:
        require_positive("availability.period", self.period)
        if not (is_finite_number(self.on_fraction) and 0 < self.on_fraction <= 1):
            raise ConfigError(
                f"availability.on_fraction is {self.on_fraction!r}; it must be above 0 (a client that is never present "
                "would never finish) and at most 1."
            )

    def bind(self, num_clients: int, seed: int) -> BoundAvailability:
        """The windows of the clients of a run with this seed."""
        return BoundAvailability(self, num_clients, seed)

    def mean_seconds(self, seconds: Array, seed: int) -> Array:
        """`seconds / on_fraction`: the mean for work begun at a random moment of presence."""
        return seconds / self.on_fraction

    def finish(self, start: float, seconds: float, phase: float) -> float:
        """The first moment by which a client present in its windows since `start` has worked `seconds`.

        Work of 0 seconds is done at once, even by an absent client; work that ends with a window ends there.
        """
        if self.on_fraction == 1.0 or seconds <= 0.0:
            return start + seconds
        window = self.on_fraction * self.period
        passed, into_period = divmod(start - phase, self.period)
        left_in_window = max(0.0, window - into_period)
        if seconds <= left_in_window:
            return start + seconds
        remaining = seconds - left_in_window
        full_windows = ceil(remaining / window) - 1
        in_last_window = min(max(0.0, remaining - full_windows * window), window)
        finished = phase + (passed + 1.0 + full_windows) * self.period + in_last_window
        # Rounding must never let work end before it could have without a pause.
        return max(finished, start + seconds)


class BoundAvailability:
    """`Availability` of the clients of one run, each with its phase.

    Args:
        availability: the description.
        num_clients: the clients known at the start, at least 1.
        seed: the seed of the run.
    """

    def __init__(self, availability: Availability, num_clients: int, seed: int) -> None:
        self._availability = availability
        self._phase = phase_trait(availability, num_clients, seed)

    def finish(self, client: int, start: float, seconds: float) -> float:
        """The first moment by which this client has worked `seconds` in its windows since `start`."""
        return self._availability.finish(start, seconds, self._phase.of(client))


def phase_trait(availability: Availability, num_clients: int, seed: int) -> Trait[float]:
    """The moment in [0, period) at which a client's window opens."""
    if not availability.random_phase:
        return shared_trait(0.0, num_clients)
    purpose, period = purpose_key(seed, "phase"), availability.period

    def phase(client: int) -> float:
        return client_unit(purpose, client) * period

    if num_clients > MOST_LISTED:
        return Trait(Computed(num_clients, phase), phase)
    return Trait((client_units(purpose, num_clients) * period).tolist(), phase)
