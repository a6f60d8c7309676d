"""What delays are like: the durations of many tickets of every client, and who is present at which hour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.delays import DelayDescription, DelayModel, LimitsBandwidth, check_timing

Floats = NDArray[np.float64]

HOUR, DAY = 3600.0, 86400.0
DAYS = 7
"""Days over which presence is averaged."""

MOMENTS_A_DAY = 96
GOLDEN_RATIO = (5**0.5 - 1) / 2
MOST_TICKETS = 200_000
MOST_PRESENT = 300
"""Of more clients, the presence of so many is looked at."""

AUTOCORRELATION_LAGS = 20


@dataclass(frozen=True, eq=False)
class DelaySample:
    """Tickets of clients that are always given the next one as soon as the last has come back or is given up.

    Args:
        arrived: when each ticket came back or was given up, in seconds, shape (tickets, clients).
        seconds: how long each took, absences included, shape (tickets, clients).
        active: the same without absences: download, computing and upload, shape (tickets, clients).
        lost: which were lost, shape (tickets, clients).
        present: the share of the clients that are present, by day and moment of the day, shape (days, moments); None if
            nobody is ever absent.
    """

    arrived: Floats
    seconds: Floats
    active: Floats
    lost: NDArray[np.bool_]
    present: Floats | None

    @property
    def client_medians(self) -> Floats:
        """The median seconds of each client without absences."""
        return np.median(self.active, axis=0)

    def between_clients(self) -> float:
        """The coefficient of variation between clients without absences, the median over tickets."""
        means = self.active.mean(axis=1)
        return float(np.median(np.divide(self.active.std(axis=1), means, out=np.zeros_like(means), where=means > 0)))

    def slowest_percent(self) -> float:
        """p99 / median of a client's tickets without absences, the median over clients."""
        medians = np.maximum(self.client_medians, np.finfo(float).tiny)
        return float(np.median(np.quantile(self.active, 0.99, axis=0) / medians))

    def autocorrelation(self) -> Floats:
        """Of the logarithm of each client's seconds without absences, at lags 0 to 20, shape (lags, clients).

        NaN for a client whose tickets all take the same.
        """
        logs = np.log(np.maximum(self.active, np.finfo(float).tiny))
        logs = logs - logs.mean(axis=0)
        variance = (logs**2).mean(axis=0)
        tickets = len(logs)
        lags = range(min(AUTOCORRELATION_LAGS, tickets - 1) + 1)
        covariance = np.array([(logs[lag:] * logs[: tickets - lag]).mean(axis=0) for lag in lags])
        return np.where(variance > 1e-18, covariance / np.maximum(variance, 1e-18), np.nan)


def sample_delays(
    delays: DelayDescription,
    num_clients: int = 20,
    seed: int = 0,
    tickets: int = 200,
    rows: int = 100,
    model_bytes: int = 0,
) -> DelaySample:
    """Draw tickets of every client.

    Args:
        delays: what is sampled.
        num_clients: how many clients there are, 1 or more.
        seed: the seed of the run.
        tickets: of each client, 2 or more; the k-th of client c has the number k * num_clients + c.
            At most 200,000 in all.
        rows: the rows of each client, 1 or more.
        model_bytes: what goes down and up with a ticket, 0 or more.

    Returns:
        The sample.
    """
    if num_clients < 1 or tickets < 2 or rows < 1:
        raise ConfigError(
            f"{num_clients} clients, {tickets} tickets, {rows} rows: at least 1 client, 2 tickets and 1 row are needed."
        )
    if num_clients * tickets > MOST_TICKETS:
        raise ConfigError(
            f"{num_clients} clients with {tickets} tickets each are {num_clients * tickets:,} tickets; the limit is "
            f"{MOST_TICKETS:,}. Ask for fewer."
        )
    model = delays.bind(num_clients, seed)
    shape = (tickets, num_clients)
    arrived, seconds, active = np.empty(shape), np.empty(shape), np.empty(shape)
    lost = np.zeros(shape, dtype=np.bool_)
    for client in range(num_clients):
        now = 0.0
        for number in range(tickets):
            ticket = number * num_clients + client
            timing = model.timing(client, ticket, Work(), rows)
            check_timing(timing, client, ticket)
            if isinstance(model, LimitsBandwidth) and model.limits_bandwidth:
                timing = timing.with_transfer(*model.transfer_seconds(client, model_bytes, model_bytes))
            active[number, client] = timing.download + timing.compute + timing.upload
            if timing.lost:
                lost[number, client] = True
                end = now + model.lost_after(client, ticket, timing)
            else:
                end = model.finish_compute(client, now + timing.download, timing.compute) + timing.upload
            seconds[number, client] = end - now
            arrived[number, client] = now = end
    return DelaySample(arrived, seconds, active, lost, _presence(model, num_clients))


def _presence(model: DelayModel, num_clients: int) -> Floats | None:
    """The share of the clients that can work through the next second, by day and moment of the day."""
    count = np.arange(DAYS * MOMENTS_A_DAY)
    # Not evenly spaced: a trace that repeats every minute would look the same at every full quarter of an hour.
    moments = (count + count * GOLDEN_RATIO % 1.0) * (DAY / MOMENTS_A_DAY)
    clients = range(min(num_clients, MOST_PRESENT))
    shares = [
        sum(model.finish_compute(client, moment, 1.0) <= moment + 1.001 for client in clients) / len(clients)
        for moment in moments.tolist()
    ]
    found = np.array(shares).reshape(DAYS, MOMENTS_A_DAY)
    return None if np.all(found == 1.0) else found
