"""What a ticket takes on average, client by client: the input of every prediction made before a run."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import purpose_key
from asyncfed.core.types import Work
from asyncfed.delays.client_traits import device_trait, slowness_trait
from asyncfed.delays.delay_model import Delays
from asyncfed.delays.duration_trace import read_trace
from asyncfed.delays.timing import DelayModel, check_timing

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ExpectedDurations:
    """Mean seconds of each part of a ticket, one number per client; infinite where the mean is."""

    download: Array
    compute: Array
    upload: Array

    @property
    def total(self) -> Array:
        """From dispatch to report, for a client that was idle."""
        return self.download + self.compute + self.upload


def expected_durations(
    delays: Delays, num_clients: int, seed: int, work: Work | None = None, num_examples: ArrayLike | None = None
) -> ExpectedDurations:
    """The exact means of the tickets of a run with these clients and this seed, device classes and slowness included.

    mean compute_c = E[compute] · slowness_c · device slowness_c, times per_sample · epochs · num_examples_c when
    `per_sample` > 0 (only then are `num_examples` needed). A trace counts with the mean of the client's rows. An
    availability window stretches computing by 1/on_fraction, its mean for work begun at a random moment of presence.
    Lost tickets are not counted in.

    >>> from asyncfed.delays import Constant, Exponential
    >>> means = expected_durations(Delays(compute=Exponential(mean=2.0), upload=Constant(value=0.5)), 2, seed=0)
    >>> means.compute.tolist(), means.total.tolist()
    ([2.0, 2.0], [2.5, 2.5])
    """
    device = device_trait(delays.devices, num_clients, seed)
    factor = np.array(slowness_trait(delays.slowness, device, num_clients, seed).known)
    if delays.per_sample > 0:
        factor *= delays.per_sample * (work or Work()).epochs * _examples(num_examples, num_clients)
    if delays.availability is not None:
        factor /= delays.availability.on_fraction
    return ExpectedDurations(
        download=np.full(num_clients, delays.download.expected()),
        compute=_stretched(_mean_compute(delays, num_clients, seed), factor),
        upload=np.full(num_clients, delays.upload.expected()),
    )


def measured_durations(
    model: DelayModel,
    num_clients: int,
    work: Work | None = None,
    num_examples: ArrayLike | None = None,
    tickets: int = 1000,
) -> ExpectedDurations:
    """The means over tickets 0 … `tickets` − 1 of any delay model, for those that have no formula (a function, say).

    Absences are not counted in, lost tickets are, as if they came back. A mean that is infinite cannot be noticed here.
    """
    if tickets < 1:
        raise ConfigError(f"tickets is {tickets}; a mean needs at least 1.")
    examples = np.ones(num_clients) if num_examples is None else _examples(num_examples, num_clients)
    asked = work or Work()
    sums = np.zeros((3, num_clients))
    for client in range(num_clients):
        for ticket in range(tickets):
            timing = model.timing(client, ticket, asked, int(examples[client]))
            check_timing(timing, client, ticket)
            sums[:, client] += timing.download, timing.compute, timing.upload
    return ExpectedDurations(*sums / tickets)


def _mean_compute(delays: Delays, num_clients: int, seed: int) -> Array:
    """Before any factor: the mean of the distribution, or of the client's rows of the trace."""
    if delays.trace is None:
        return np.full(num_clients, delays.compute.expected())
    trace = read_trace(delays.trace, purpose_key(seed, "trace"))
    of_others = float(np.mean(trace.pooled))
    own = {client: float(np.mean(rows)) for client, rows in trace.by_client.items()}
    return np.array([own.get(client, of_others) for client in range(num_clients)])


def _stretched(seconds: Array, factor: Array) -> Array:
    """The product, with nothing at all being nothing even of infinitely much."""
    return np.where(factor > 0, seconds * np.where((factor == 0) & (seconds == inf), 1.0, factor), 0.0)


def _examples(num_examples: ArrayLike | None, num_clients: int) -> Array:
    if num_examples is None:
        raise ConfigError(
            "delays.per_sample is above 0, so durations depend on how many samples each client has; pass num_examples."
        )
    examples = np.asarray(num_examples, dtype=np.float64)
    if examples.shape != (num_clients,):
        raise ConfigError(
            f"num_examples has shape {examples.shape}, but there are {num_clients} clients; give one each."
        )
    return examples
