"""What a ticket takes on average, client by client: the input of every prediction made before a run."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.delays.delay_model import check_num_examples
from asyncfed.delays.delay_protocols import (
    DelayDescription,
    DelayModel,
    ExpectedDurations,
    LimitsBandwidth,
    PredictableDelays,
    check_timing,
)

MOST_DRAWS = 1_000_000
TICKETS_PER_CLIENT = 1000


def expected_durations(
    delays: DelayDescription,
    num_clients: int,
    seed: int,
    work: Work | None = None,
    num_examples: ArrayLike | None = None,
    bytes_down: int = 0,
    bytes_up: int = 0,
) -> ExpectedDurations:
    """The mean durations of the tickets of a run with these clients and this seed.

    They are exact for `PredictableDelays`, as `Delays` are; of other descriptions they are the means of up to 1000
    tickets a client, a million in all.

    Args:
        delays: the delay description of the run.
        num_clients: how many clients there are, at least 1.
        seed: the seed of the run.
        work: the local training of a ticket; by default `Work()`.
        num_examples: the rows of each client, for durations that depend on them, as all do for work with `steps`.
        bytes_down: what a ticket downloads, in bytes, 0 or more; its seconds count where bandwidth is limited.
        bytes_up: what it uploads, in bytes, 0 or more.

    Returns:
        The mean seconds of each part of a ticket, client by client.

    >>> from asyncfed.delays import Constant, Delays, Exponential
    >>> means = expected_durations(Delays(compute=Exponential(mean=2.0), upload=Constant(value=0.5)), 2, seed=0)
    >>> means.compute.tolist(), means.total.tolist()
    ([2.0, 2.0], [2.5, 2.5])
    """
    if isinstance(delays, PredictableDelays):
        means = delays.expected_durations(num_clients, seed, work or Work(), num_examples)
        if not (bytes_down or bytes_up):
            return means
        return _add_transfer(means, delays.bind(num_clients, seed), bytes_down, bytes_up)
    tickets = max(1, min(TICKETS_PER_CLIENT, MOST_DRAWS // num_clients))
    model = delays.bind(num_clients, seed)
    return estimate_durations(model, num_clients, work, num_examples, tickets, bytes_down, bytes_up)


def estimate_durations(
    model: DelayModel,
    num_clients: int,
    work: Work | None = None,
    num_examples: ArrayLike | None = None,
    tickets: int = TICKETS_PER_CLIENT,
    bytes_down: int = 0,
    bytes_up: int = 0,
) -> ExpectedDurations:
    """The means over tickets 0 ... `tickets` - 1 of any delay model, for those that have no formula.

    Absences are not counted in, lost tickets are, as if they came back. An infinite mean cannot be noticed here.

    Args:
        model: the delay model of a run.
        num_clients: how many clients there are, at least 1.
        work: the local training of a ticket; by default `Work()`.
        num_examples: the rows of each client; 1 each if left out.
        tickets: how many tickets of each client are averaged, at least 1.
        bytes_down: what a ticket downloads, in bytes, 0 or more.
        bytes_up: what it uploads, in bytes, 0 or more.

    Returns:
        The mean seconds of each part of a ticket, client by client.
    """
    if tickets < 1:
        raise ConfigError(f"tickets is {tickets}; a mean needs at least 1.")
    examples = np.ones(num_clients) if num_examples is None else check_num_examples(num_examples, num_clients)
    sums = np.zeros((3, num_clients))
    for client in range(num_clients):
        for ticket in range(tickets):
            timing = model.timing(client, ticket, work or Work(), int(examples[client]))
            check_timing(timing, client, ticket)
            sums[:, client] += timing.download, timing.compute, timing.upload
    return _add_transfer(ExpectedDurations(*sums / tickets), model, bytes_down, bytes_up)


def _add_transfer(means: ExpectedDurations, model: DelayModel, bytes_down: int, bytes_up: int) -> ExpectedDurations:
    """The means with the seconds of these bytes, client by client, where the model limits bandwidth."""
    if not (isinstance(model, LimitsBandwidth) and model.limits_bandwidth):
        return means
    seconds = np.array([model.transfer_seconds(client, bytes_down, bytes_up) for client in range(len(means.compute))])
    return ExpectedDurations(means.download + seconds[:, 0], means.compute, means.upload + seconds[:, 1])
