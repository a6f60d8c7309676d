"""Traces in FedScale's format: how fast devices are, and when they are present."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import purpose_key
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.core.types import Work
from asyncfed.delays.checks import is_finite_number, require_non_negative, require_positive, require_probability
from asyncfed.delays.delay_model import check_num_examples
from asyncfed.delays.delay_protocols import Array, ExpectedDurations, Timing
from asyncfed.delays.keyed_draws import keyed_unit
from asyncfed.delays.presence import PresenceDescription
from asyncfed.delays.presence_intervals import PresenceIntervals, RecordedPresence
from asyncfed.delays.trace_files import file_state, read_plain
from asyncfed.delays.work_amount import count_passes
from asyncfed.registry import register

BYTES_A_KILOBIT = 128.0
"""FedScale counts 1024 bits."""


@register("availability")
class FedScaleAvailability(Config, tag_field="kind", tag="fedscale"):
    """When devices were present, from a file in the format of FedScale's `client_behave_trace`.

    The file is a dictionary by device, each with `active` and `inactive`, two lists of seconds of the same length, and
    `finish_time`: the device is present from `active[i]` to `inactive[i]`, and all repeats after `finish_time`. Other
    keys are ignored. Client c is the c-th device that is ever present, and they repeat.

    Args:
        file: the path, of JSON or of a pickle that holds plain values only.

    Reference: Lai et al., "FedScale: Benchmarking Model and System Performance of Federated Learning at Scale", 2022.
    """

    file: str

    def bind(self, num_clients: int, seed: int) -> RecordedPresence:
        """The devices of the file; neither the clients' number nor the seed changes them."""
        return _presence(self.file, file_state(self.file))

    def mean_seconds(self, seconds: Array, seed: int) -> Array:
        """`seconds / share` of each client's device: the mean for work begun at a random moment of presence."""
        return _presence(self.file, file_state(self.file)).mean_seconds(seconds)


@register("delays")
class FedScaleDelays(Config, tag_field="kind", tag="fedscale"):
    """How long work takes on devices whose speeds are in a file in the format of FedScale's `client_device_capacity`.

        compute = factor * computation / 1000 * rows * passes,    transfer = bytes / (128 * communication)

    The file is a dictionary by device, each with `computation`, the milliseconds of inference a row, and
    `communication`, the speed of its link in kilobits (of 1024 bits) a second. Client c is the c-th device, and they
    repeat.

    Args:
        capacity: the path, of JSON or of a pickle that holds plain values only.
        factor: how much longer training a row takes than inference, above 0; FedScale's own is 3.
        availability: when clients are present; None: always.
        dropout: probability that a ticket is lost, 0 <= dropout < 1.
        timeout: seconds after dispatch at which a lost ticket is given up, above 0; None: after those it would have
            taken.
        watts: the power that every client draws while it computes, 0 or more.

    Reference: Lai et al., "FedScale: Benchmarking Model and System Performance of Federated Learning at Scale", 2022.
    """

    capacity: str
    factor: float = 3.0
    availability: PresenceDescription | None = None
    dropout: float = 0.0
    timeout: float | UnsetType = UNSET
    watts: float = 5.0

    def __post_init__(self) -> None:
        require_positive("delays.factor", self.factor)
        require_probability("delays.dropout", self.dropout)
        if self.dropout == 1:
            raise ConfigError("delays.dropout is 1; no ticket would ever come back. It must be below 1.")
        if self.timeout is not UNSET:
            require_positive("delays.timeout", self.timeout)
        require_non_negative("delays.watts", self.watts)

    @property
    def may_lose(self) -> bool:
        """Whether a ticket can be lost."""
        return self.dropout > 0

    @property
    def depends_on_examples(self) -> bool:
        """True: computing takes so long a row."""
        return True

    def bind(self, num_clients: int, seed: int) -> BoundFedScale:
        """The delay model of a run with these clients and this seed. Reads the files."""
        return BoundFedScale(self, num_clients, seed)

    def expected_durations(
        self, num_clients: int, seed: int, work: Work, num_examples: ArrayLike | None = None
    ) -> ExpectedDurations:
        """The exact means: computing by the formula, absences with the mean of their kind."""
        examples = check_num_examples(num_examples, num_clients)
        model = self.bind(num_clients, seed)
        timings = [model.timing(client, 0, work, int(rows)) for client, rows in enumerate(examples)]
        compute = np.array([timing.compute for timing in timings])
        if self.availability is not None:
            compute = self.availability.mean_seconds(compute, seed)
        return ExpectedDurations(np.zeros(num_clients), compute, np.zeros(num_clients))

    def simplifications(self, queued: bool) -> tuple[str, ...]:
        """What a prediction from means leaves out of account."""
        found = ["the computing times are not exponential"] if queued else []
        if self.may_lose:
            found.append("tickets are lost, which is left out")
        if self.availability is not None:
            found.append("absences count with their mean only")
        return tuple(found)


class BoundFedScale:
    """`FedScaleDelays` of one run.

    Args:
        delays: the description.
        num_clients: the clients known at the start.
        seed: the seed of the run.
    """

    def __init__(self, delays: FedScaleDelays, num_clients: int, seed: int) -> None:
        self._delays = delays
        self._devices = _capacities(delays.capacity, file_state(delays.capacity))
        self._presence = None if delays.availability is None else delays.availability.bind(num_clients, seed)
        self._dropout_key = purpose_key(seed, "dropout")

    def timing(self, client: int, ticket: int, work: Work, num_examples: int) -> Timing:
        """The seconds of computing, and whether the ticket is lost."""
        milliseconds, _ = self._devices[client % len(self._devices)]
        compute = self._delays.factor * milliseconds / 1000.0 * num_examples * count_passes(work, num_examples)
        dropout = self._delays.dropout
        lost = dropout > 0.0 and keyed_unit(self._dropout_key, client, ticket) < dropout
        return Timing(0.0, compute, 0.0, lost)

    @property
    def limits_bandwidth(self) -> bool:
        """True: every device's link has a speed."""
        return True

    def transfer_seconds(self, client: int, bytes_down: int, bytes_up: int) -> tuple[float, float]:
        """`bytes / (128 * communication)` down and up."""
        speed = BYTES_A_KILOBIT * self._devices[client % len(self._devices)][1]
        return bytes_down / speed, bytes_up / speed

    def watts(self, client: int) -> float:
        """The same power for every client."""
        return self._delays.watts

    def finish_compute(self, client: int, start: float, seconds: float) -> float:
        """When `seconds` of work begun at `start` are done, the client's absences included."""
        return start + seconds if self._presence is None else self._presence.finish(client, start, seconds)

    def lost_after(self, client: int, ticket: int, timing: Timing) -> float:
        """`timeout`, or else the sum of the ticket's parts."""
        if self._delays.timeout is not UNSET:
            return self._delays.timeout
        return timing.download + timing.compute + timing.upload


@lru_cache(maxsize=4)
def _presence(path: str, state: tuple[int, int]) -> RecordedPresence:
    return RecordedPresence(path, [_intervals(at, entry) for at, entry in _entries(path)])


@lru_cache(maxsize=4)
def _capacities(path: str, state: tuple[int, int]) -> tuple[tuple[float, float], ...]:
    return tuple(
        (_positive(at, entry, "computation"), _positive(at, entry, "communication")) for at, entry in _entries(path)
    )


def _entries(path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The devices of a file in their order, with words for where each is."""
    found = read_plain(path)
    if not (isinstance(found, dict) and found):
        raise ConfigError(
            f"{path} holds {_words(found)}; it must be a dictionary of devices by their key, at least one."
        )
    for key, entry in found.items():
        if not isinstance(entry, dict):
            raise ConfigError(f"{path}, key {key!r}: {_words(entry)}, where a dictionary of the device is expected.")
        yield f"{path}, key {key!r}", entry


def _positive(at: str, entry: Mapping[str, Any], name: str) -> float:
    value = _required(at, entry, name)
    if not (is_finite_number(value) and value > 0):
        raise ConfigError(f"{at}: {name} is {value!r}; it must be a finite number above zero.")
    return float(value)


def _intervals(at: str, entry: Mapping[str, Any]) -> PresenceIntervals:
    active, inactive = (_seconds(at, name, _required(at, entry, name)) for name in ("active", "inactive"))
    if len(active) != len(inactive):
        raise ConfigError(f"{at}: {len(active)} active and {len(inactive)} inactive; there must be as many of each.")
    period = _positive(at, entry, "finish_time")
    for number, (begin, end) in enumerate(zip(active, inactive, strict=True)):
        if begin > end:
            raise ConfigError(
                f"{at}: active[{number}] is {begin:g} and inactive[{number}] is {end:g}; a presence must not end "
                "before it begins."
            )
    # What is recorded after finish_time never happens: the trace begins again there.
    pairs = zip(active, inactive, strict=True)
    return PresenceIntervals([(min(begin, period), min(end, period)) for begin, end in pairs], period)


def _seconds(at: str, name: str, values: Any) -> list[float]:
    if not isinstance(values, list | tuple):
        raise ConfigError(f"{at}: {name} is {_words(values)}; it must be a list of seconds.")
    for number, value in enumerate(values):
        if not (isinstance(value, int | float) and isfinite(value) and value >= 0):
            raise ConfigError(f"{at}: {name}[{number}] is {value!r}; it must be a finite number, zero or more.")
    return [float(value) for value in values]


def _required(at: str, entry: Mapping[str, Any], name: str) -> Any:
    if name not in entry:
        raise ConfigError(f"{at}: {name} is missing; there are {', '.join(map(str, entry)) or 'no keys'}.")
    return entry[name]


def _words(value: Any) -> str:
    """What stands there, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
