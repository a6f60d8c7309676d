"""Delays: how long work takes and which clients are present, as a user writes it, and bound to a run."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import purpose_key
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.core.types import Work
from asyncfed.delays.checks import require_non_negative, require_positive, require_probability
from asyncfed.delays.client_traits import bandwidth_trait, device_trait, slowness_trait
from asyncfed.delays.delay_numbers import ClassNumbers, DelayNumbers, TicketDraws
from asyncfed.delays.delay_protocols import Array, DelayDescription, ExpectedDurations, Timing
from asyncfed.delays.devices import ClassBounds, Device, complete_classes
from asyncfed.delays.distributions import Constant, Distribution, require_positive_draws
from asyncfed.delays.duration_trace import read_trace
from asyncfed.delays.keyed_draws import keyed_unit
from asyncfed.delays.presence import PresenceDescription
from asyncfed.delays.variation import Variation
from asyncfed.delays.work_amount import count_passes
from asyncfed.registry import declare_part, promises

TicketDraw: TypeAlias = Callable[[int, int], float]
ONE = Constant(value=1.0)
NOTHING = Constant(value=0.0)


class Delays(Config):
    """How long each ticket takes, in seconds of virtual time: the default `delays` of an experiment.

    The computing time of a ticket is `compute * slowness[client] * device slowness`, times the client's `variation` at
    this ticket, if there is one; when `per_sample` > 0, times `per_sample * epochs * num_examples` as well, `compute`
    then being a factor. Of work with `steps`, `compute` is the time of one pass over the client's data: it counts times
    `passes = steps / ceil(num_examples / batch_size)`, and `per_sample` times `passes * num_examples`, the rows that
    the steps go through. A ticket is lost with probability `1 - (1 - dropout) * (1 - device dropout)`. With a
    bandwidth, `bytes / bandwidth[client]` is added to `download` and to `upload`.

    Args:
        compute: distribution of the seconds of computing, drawn per ticket.
        per_sample: seconds per row and epoch, 0 or more; 0: the number of rows does not matter.
        slowness: distribution of the factor on computing time that each client keeps, drawn once per client.
        download: distribution of the seconds until a client has the model, drawn per ticket.
        upload: distribution of the seconds until the server has the report, drawn per ticket.
        devices: classes of devices and their shares of the clients; together at most 1.
        availability: when clients are present, `Availability` or another kind; None: always.
        dropout: probability that a ticket is lost, 0 <= dropout < 1.
        timeout: seconds after dispatch at which the server gives up a lost ticket, above 0; None: after the seconds
            that it would have taken.
        trace: path of a CSV file of measured seconds (see `read_trace`), which replaces `compute`.
        bandwidth_down: distribution of the bytes per second at which a client downloads, drawn once per client, every
            draw above 0; left out: bytes take no time.
        bandwidth_up: the same for uploads.
        variation: how a client's computing time varies from ticket to ticket, beside the draws of `compute`; left out:
            it does not.

    What is UNSET is not written down, so that delays without it read as they always did.

    >>> model = Delays(compute=Constant(value=2.0), upload=Constant(value=0.5)).bind(num_clients=3, seed=0)
    >>> model.timing(client=1, ticket=4, work=Work(), num_examples=100)
    Timing(download=0.0, compute=2.0, upload=0.5, lost=False)
    """

    compute: Distribution = ONE
    per_sample: float = 0.0
    slowness: Distribution = ONE
    download: Distribution = NOTHING
    upload: Distribution = NOTHING
    devices: tuple[Device, ...] = ()
    availability: PresenceDescription | None = None
    dropout: float = 0.0
    timeout: float | None = None
    trace: str | None = None
    bandwidth_down: Distribution | UnsetType = UNSET
    bandwidth_up: Distribution | UnsetType = UNSET
    variation: Variation | UnsetType = UNSET

    def __post_init__(self) -> None:
        require_non_negative("delays.per_sample", self.per_sample)
        require_probability("delays.dropout", self.dropout)
        if self.dropout == 1:
            raise ConfigError("delays.dropout is 1; no ticket would ever come back. It must be below 1.")
        if self.timeout is not None:
            require_positive("delays.timeout", self.timeout, "Leave it out to wait as long as the ticket would take.")
        complete_classes(self.devices)
        if self.bandwidth_down is not UNSET:
            require_positive_draws("delays.bandwidth_down", self.bandwidth_down)
        if self.bandwidth_up is not UNSET:
            require_positive_draws("delays.bandwidth_up", self.bandwidth_up)
        if self.trace is not None and (self.compute != ONE or self.per_sample > 0):
            raise ConfigError(
                f"delays.trace is {self.trace!r}, which replaces delays.compute and delays.per_sample, but one of them "
                "is set too. Remove it or the trace."
            )

    @property
    def may_lose(self) -> bool:
        """Whether a ticket can be lost."""
        return self.dropout > 0 or any(device.dropout > 0 for device in self.devices)

    def bind(self, num_clients: int, seed: int) -> BoundDelays:
        """The delay model of a run with these clients and this seed. Reads the trace, if there is one."""
        if num_clients < 1:
            raise ConfigError(f"delays cannot be bound to {num_clients} clients; a run needs at least 1.")
        return BoundDelays(self, num_clients, seed)

    @property
    def depends_on_examples(self) -> bool:
        """Whether durations depend on how many rows a client has even without `work.steps`; with it they always do."""
        return self.per_sample > 0

    def expected_durations(
        self, num_clients: int, seed: int, work: Work, num_examples: ArrayLike | None = None
    ) -> ExpectedDurations:
        """The exact means of the tickets of a run, device classes and slowness included.

        `mean compute_c = E[compute] * slowness_c * device slowness_c`, times `per_sample * epochs * num_examples_c`
        when `per_sample` > 0; for work with `steps`, see `Delays`. The seconds of transferred bytes are not in it:
        `asyncfed.delays.expected_durations` adds them. A trace counts with the mean of the client's rows, a variation
        with its mean factor, absences with the mean of their kind (windows: `1 / on_fraction` times the seconds, for
        work begun at a random moment of presence). Lost tickets are not counted in.
        """
        device = device_trait(self.devices, num_clients, seed)
        factor = np.array(slowness_trait(self.slowness, device, num_clients, seed).known)
        if self.per_sample > 0 or work.steps is not UNSET:
            examples = check_num_examples(num_examples, num_clients)
            passes = np.array([count_passes(work, int(rows)) for rows in examples])
            factor *= self.per_sample * passes * examples if self.per_sample > 0 else passes
        if self.variation is not UNSET:
            factor *= self.variation.mean_factors(num_clients, seed)
        compute = _multiply(_mean_compute(self, num_clients, seed), factor)
        return ExpectedDurations(
            download=np.full(num_clients, self.download.expected()),
            compute=compute if self.availability is None else self.availability.mean_seconds(compute, seed),
            upload=np.full(num_clients, self.upload.expected()),
        )

    def simplifications(self, queued: bool) -> tuple[str, ...]:
        """What a prediction from means leaves out of account."""
        found = []
        if queued and (self.trace is not None or not self.compute.is_exponential):
            found.append("the computing times are not exponential")
        if queued and not self.download.is_constant:
            found.append("downloads vary")
        if self.may_lose:
            found.append("tickets are lost, which is left out")
        if self.availability is not None:
            found.append("absences count with their mean only")
        if self.variation is not UNSET:
            found += self.variation.simplifications()
        return tuple(found)


declare_part("delays", DelayDescription, default=Delays)


class BoundDelays:
    """`Delays` of one run: a `DelayModel` whose every draw is keyed by `(seed, purpose, client, ticket)`.

    Args:
        delays: the description.
        num_clients: the clients known at the start, at least 1.
        seed: the seed of the run.
    """

    def __init__(self, delays: Delays, num_clients: int, seed: int) -> None:
        self._delays, self._seed = delays, seed
        self._num_clients = num_clients
        self._dropout = delays.dropout
        self._timeout = None if delays.timeout is None else float(delays.timeout)  # as it is read back
        self._per_sample = delays.per_sample
        self._presence = None if delays.availability is None else delays.availability.bind(num_clients, seed)
        self._factor = None if delays.variation is UNSET else delays.variation.bind(num_clients, seed)
        self._dropout_key = purpose_key(seed, "dropout")
        self._may_lose = delays.may_lose
        self._device = device_trait(delays.devices, num_clients, seed)
        self._known_devices = self._device.known
        slowness = slowness_trait(delays.slowness, self._device, num_clients, seed)
        self._known_slowness, self._later_slowness = slowness
        self._download, self._constant_download = _per_ticket(delays.download, purpose_key(seed, "download"))
        self._upload, self._constant_upload = _per_ticket(delays.upload, purpose_key(seed, "upload"))
        if delays.trace is not None:
            self._compute: TicketDraw = read_trace(delays.trace, purpose_key(seed, "trace")).seconds
        else:
            self._compute, _ = _per_ticket(delays.compute, purpose_key(seed, "compute"))
        self._limits_bandwidth = _limits_bandwidth(delays)
        if self._limits_bandwidth:
            self._bandwidth_down = bandwidth_trait("down", delays.bandwidth_down, self._device, seed)
            self._bandwidth_up = bandwidth_trait("up", delays.bandwidth_up, self._device, seed)
        self._of_every_ticket: Timing | None = None
        if _is_constant(delays):
            self._of_every_ticket = self.timing(0, 0, Work(), 1)

    def timing(self, client: int, ticket: int, work: Work, num_examples: int) -> Timing:
        """The seconds of this ticket without those of its bytes, and whether it is lost."""
        if self._of_every_ticket is not None and work.steps is UNSET:
            return self._of_every_ticket
        known = client < self._num_clients
        compute = self._compute(client, ticket) * (
            self._known_slowness[client] if known else self._later_slowness(client)
        )
        if self._factor is not None:
            compute *= self._factor(client, ticket)
        if self._per_sample > 0.0:
            passes = work.epochs if work.steps is UNSET else count_passes(work, num_examples)
            compute *= self._per_sample * passes * num_examples
        elif work.steps is not UNSET:
            compute *= count_passes(work, num_examples)
        download, upload = self._constant_download, self._constant_upload
        return Timing(
            self._download(client, ticket) if download is None else download,
            compute,
            self._upload(client, ticket) if upload is None else upload,
            self._may_lose and self._loses(client, ticket),
        )

    @property
    def limits_bandwidth(self) -> bool:
        """Whether any client's link has a speed."""
        return self._limits_bandwidth

    def transfer_seconds(self, client: int, bytes_down: int, bytes_up: int) -> tuple[float, float]:
        """`bytes / bandwidth[client]` down and up, to be added to the timing; 0 where no bandwidth is set.

        >>> model = Delays(bandwidth_down=Constant(value=2e6)).bind(num_clients=3, seed=0)
        >>> model.transfer_seconds(client=1, bytes_down=8_000_000, bytes_up=8_000_000)
        (4.0, 0.0)
        """
        if not self._limits_bandwidth:
            return 0.0, 0.0
        return bytes_down / self._bandwidth_down.of(client), bytes_up / self._bandwidth_up.of(client)

    def watts(self, client: int) -> float:
        """The power of this client's device while it computes, in watts."""
        if client < self._num_clients:
            return self._known_devices[client].watts
        return self._device.later(client).watts

    def device_of(self, client: int) -> str:
        """The name of this client's device class; "standard" if it belongs to none."""
        return self._device.of(client).name

    def finish_compute(self, client: int, start: float, seconds: float) -> float:
        """When `seconds` of work begun at `start` are done, the client's absences included."""
        if self._presence is None:
            return start + seconds
        return self._presence.finish(client, start, seconds)

    def lost_after(self, client: int, ticket: int, timing: Timing) -> float:
        """`timeout`, or else the sum of the ticket's parts: no wait in a queue and no absence is added to it.

        The seconds of its bytes count where `timing` includes them (`Timing.with_transfer`).
        """
        if self._timeout is not None:
            return self._timeout
        return timing.download + timing.compute + timing.upload

    def _loses(self, client: int, ticket: int) -> bool:
        return keyed_unit(self._dropout_key, client, ticket) < 1.0 - self._comes_back(self._device.of(client))

    def _comes_back(self, device: Device) -> float:
        return (1.0 - self._dropout) * (1.0 - device.dropout)

    def _ticket_draws(self, name: str) -> TicketDraws | None:
        distribution = getattr(self._delays, name)
        return (
            TicketDraws(distribution, purpose_key(self._seed, name)) if promises(distribution, "as_numbers") else None
        )

    def as_numbers(self) -> DelayNumbers | None:
        """For a simulator that decides ahead; None with absences, a trace, a variation, bandwidths, or a distribution
        that compiled code does not know."""
        is_simple = self._presence is None and self._factor is None and self._delays.trace is None
        draws = [self._ticket_draws(name) for name in ("compute", "download", "upload", "slowness")]
        known = [each for each in draws if each is not None]
        if not is_simple or self._limits_bandwidth or len(known) < len(draws):
            return None
        return DelayNumbers(
            num_clients=self._num_clients,
            compute=known[0],
            download=known[1],
            upload=known[2],
            slowness=known[3],
            classes=self._class_numbers(),
            may_lose=self._may_lose,
            dropout=self._dropout_key,
            timeout=self._timeout,
            per_sample=self._per_sample,
        )

    def _class_numbers(self) -> ClassNumbers:
        classes, purpose = complete_classes(self._delays.devices), purpose_key(self._seed, "device")
        firsts = ClassBounds(classes, self._num_clients, purpose).firsts
        return ClassNumbers(
            slowness=np.array([float(device.slowness) for device in classes]),
            watts=np.array([float(device.watts) for device in classes]),
            comes_back=np.array([self._comes_back(device) for device in classes]),
            purpose=purpose,
            first_units=np.array([unit for unit, _ in firsts], np.float64),
            first_clients=np.array([client for _, client in firsts], np.int64),
        )


def _is_constant(delays: Delays) -> bool:
    """True if every ticket of every client takes the same, whatever its epochs: then nothing is ever drawn."""
    parts = (delays.compute, delays.slowness, delays.download, delays.upload)
    if delays.devices or delays.dropout > 0 or delays.per_sample > 0 or delays.trace is not None:
        return False
    if delays.variation is not UNSET:
        return False
    return all(part.is_constant for part in parts)


def _limits_bandwidth(delays: Delays) -> bool:
    """Whether a bandwidth is set anywhere."""
    everywhere = (delays.bandwidth_down, delays.bandwidth_up)
    of_classes = (speed for device in delays.devices for speed in (device.bandwidth_down, device.bandwidth_up))
    return any(speed is not UNSET for speed in (*everywhere, *of_classes))


def _per_ticket(distribution: Distribution, purpose: int) -> tuple[TicketDraw, float | None]:
    """This distribution as a function of (client, ticket), and its value where it is constant and needs no call."""
    if distribution.is_constant:
        value = float(distribution.expected())
        return (lambda client, ticket: value), value
    draw = distribution.draw
    return (lambda client, ticket: draw(keyed_unit(purpose, client, ticket))), None


def check_num_examples(num_examples: ArrayLike | None, num_clients: int) -> Array:
    """The rows of each client as an array; refused if they are missing or not one number per client."""
    if num_examples is None:
        raise ConfigError(
            "delays.per_sample is above 0 or work.steps is set, so durations depend on how many rows each client has; "
            "pass num_examples."
        )
    examples = np.asarray(num_examples, dtype=np.float64)
    if examples.shape != (num_clients,):
        raise ConfigError(
            f"num_examples has shape {examples.shape}, but there are {num_clients} clients; give one each."
        )
    return examples


def _mean_compute(delays: Delays, num_clients: int, seed: int) -> Array:
    """Before any factor: the mean of the distribution, or of the client's rows of the trace."""
    if delays.trace is None:
        return np.full(num_clients, delays.compute.expected())
    trace = read_trace(delays.trace, purpose_key(seed, "trace"))
    of_others = float(np.mean(trace.pooled))
    own = {client: float(np.mean(rows)) for client, rows in trace.by_client.items()}
    return np.array([own.get(client, of_others) for client in range(num_clients)])


def _multiply(seconds: Array, factor: Array) -> Array:
    """The product, 0 wherever the factor is 0, even of infinitely many seconds."""
    return np.where(factor > 0, seconds * np.where((factor == 0) & (seconds == inf), 1.0, factor), 0.0)
