"""Which clients to draw how often, so that asynchronous SGD with queues is fast in seconds, not only in updates.

C clients, J tickets in the network, each new one for client c with chance p_c, the change of client c merged with
weight 1 / (C p_c) (Generalized AsyncSGD). Then every merge is unbiased whatever p is, and p decides three things:

    throughput(p)                                 merges per second                        `queued_dispatch`
    noise(p)     = (1/C²) Σ 1 / p_c               how much a merge varies; least, 1, for equal p
    staleness(p) = (1/C²) Σ staleness_c / p_c     what the changes that are out will add up to

With smooth losses (constant L), gradients of second moment at most B and a step η, the mean squared gradient norm after
K merges is at most, constants left out,

    Δ / (η K)  +  η L B noise(p)  +  η² L² B (J - 1) staleness(p)

the last term because J - 1 changes are always missing from the model (perturbed iterates). It comes down to ε, with the
best η, after

    updates(p) = (L Δ / ε) (1 + r noise(p) + sqrt(r (J - 1) staleness(p))),   r = B / ε

merges, hence after seconds(p) = updates(p) / throughput(p). To minimise the updates alone fills the queues of slow
clients, because a ticket that waits where p is large counts for little: few updates, each of which takes long.

Leconte et al., "Queuing dynamics of asynchronous federated learning", AISTATS 2024, have the sampling and a bound of
this form; Alahyane et al., "Optimizing Asynchronous Federated Learning: A Delicate Trade-Off Between Model-Parameter
Staleness and Update Frequency", 2025 (arXiv 2502.08206), the warning against counting updates. The form above is
derived here, and its constants are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from asyncfed.core.errors import ConfigError
from asyncfed.theory.queueing import Prediction, queued_dispatch

Array = NDArray[np.float64]

WIDEST = 14.0
"""No chance is sought more than exp(14), a million times, above another one."""


@dataclass(frozen=True, eq=False)
class SamplingPlan:
    """How often to draw each client, and what is predicted of it.

    Attributes:
        probabilities: p_c of each client, (C,), above 0 and summing to 1.
        prediction: throughput, staleness and the rest with these chances.
        updates: merges that are needed, in units of L Δ / ε.
        seconds: the time that they take, in units of L Δ / ε seconds.
    """

    probabilities: Array
    prediction: Prediction
    updates: float
    seconds: float


def sampling_plan(
    mean_service: ArrayLike,
    in_flight: int,
    probabilities: ArrayLike | None = None,
    mean_transfer: ArrayLike = 0.0,
    noise_ratio: float = 100.0,
) -> SamplingPlan:
    """What these chances of being drawn promise.

    Args:
        mean_service: mean seconds that a ticket keeps its client at work, (C,), above 0.
        in_flight: J, tickets in the network, 1 or more.
        probabilities: p, (C,), above 0; None for equal ones.
        mean_transfer: mean seconds of a ticket's download and upload, 0 or more, one number or (C,).
        noise_ratio: r = B / ε, above 0: the second moment of a client's stochastic gradient over the squared norm of
            the whole gradient that is to be reached.

    Returns:
        The chances with what is predicted of them.

    >>> plan = sampling_plan([1.0, 0.5, 0.2], in_flight=4, probabilities=[0.2, 0.3, 0.5])
    >>> round(plan.prediction.throughput, 3), plan.prediction.staleness.round(3).tolist()
    (4.219, [7.509, 3.193, 1.081])
    """
    network = _Network(mean_service, in_flight, mean_transfer, noise_ratio)
    chances = None if probabilities is None else np.asarray(probabilities, np.float64)
    if chances is not None and chances.shape == network.service.shape and not (chances > 0.0).all():
        client = int(np.argmin(chances))
        raise ConfigError(
            f"probabilities[{client}] is {chances[client]}; who is never drawn is missing from the objective. Give "
            "every client a chance above 0."
        )
    prediction = queued_dispatch(network.service, in_flight, chances, network.transfer)
    updates, seconds, _ = network.cost(np.log(prediction.share))
    return SamplingPlan(prediction.share, prediction, updates, seconds)


def optimal_sampling(
    mean_service: ArrayLike,
    in_flight: int,
    mean_transfer: ArrayLike = 0.0,
    noise_ratio: float = 100.0,
    per: Literal["second", "update"] = "second",
) -> SamplingPlan:
    """The chances of being drawn that need the least time, by numerical minimisation from fixed starts.

    Clients with the same means get the same chance, all of them 1/C if there is one speed only. A step of the search
    costs O(C·J); some hundred clients take about a second. The minimum is the lowest that was found from equal chances
    and from chances that follow the speeds; it has not been proved to be the only one.

    Args:
        mean_service: mean seconds that a ticket keeps its client at work, (C,), above 0.
        in_flight: J, tickets in the network, 1 or more.
        mean_transfer: mean seconds of a ticket's download and upload, 0 or more, one number or (C,).
        noise_ratio: r = B / ε, above 0: the second moment of a client's stochastic gradient over the squared norm of
            the whole gradient that is to be reached. The larger, the more the noise of a merge counts against its
            staleness.
        per: what is minimised: the time ("second"), or the number of updates ("update"), which makes each of them take
            longer.

    Returns:
        The best chances with what is predicted of them.

    >>> optimal_sampling([2.0, 2.0, 2.0, 2.0], in_flight=3).probabilities.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    network = _Network(mean_service, in_flight, mean_transfer, noise_ratio)
    group = np.unique(np.stack([network.service, network.transfer]), axis=1, return_inverse=True)[1].ravel()
    sizes = np.bincount(group)

    def cost(of_groups: Array) -> tuple[float, Array]:
        # The search is over one number per speed, in logarithms, relative to the first; chances sum to 1 by scaling.
        logs = np.append(0.0, of_groups)[group]
        logs = logs - np.log(np.sum(np.exp(logs)))
        updates, seconds, slopes = network.cost(logs)
        value, slope = (np.log(seconds), slopes[1]) if per == "second" else (np.log(updates), slopes[0])
        slope = slope - np.exp(logs) * slope.sum()
        of_group: Array = np.bincount(group, weights=slope).astype(np.float64)
        return float(value), of_group[1:]

    if len(sizes) == 1:
        return sampling_plan(network.service, in_flight, None, network.transfer, noise_ratio)
    speed = -np.log(network.service + network.transfer)
    of_speeds = np.bincount(group, weights=speed) / sizes
    starts = [np.zeros(len(sizes) - 1), np.clip(of_speeds[1:] - of_speeds[0], -WIDEST, WIDEST)]
    limits = [(-WIDEST, WIDEST)] * (len(sizes) - 1)
    settings: Any = {"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-9}
    found = [minimize(cost, s, jac=True, method="L-BFGS-B", bounds=limits, options=settings) for s in starts]
    best = min(found, key=lambda result: float(result.fun))
    chances = np.exp(np.append(0.0, best.x))[group]
    return sampling_plan(network.service, in_flight, chances / chances.sum(), network.transfer, noise_ratio)


class _Network:
    """The closed network as a function of the chances, with its slopes, by mean-value analysis."""

    def __init__(self, mean_service: ArrayLike, in_flight: int, mean_transfer: ArrayLike, noise_ratio: float) -> None:
        predicted = queued_dispatch(mean_service, in_flight, mean_transfer=mean_transfer)  # refuses what is wrong
        self.service = np.atleast_1d(np.asarray(mean_service, np.float64))
        self.transfer = np.broadcast_to(np.asarray(mean_transfer, np.float64), predicted.share.shape).copy()
        if not 0.0 < noise_ratio < np.inf:
            raise ConfigError(f"noise_ratio is {noise_ratio}; it must be a positive number.")
        self._tickets, self._ratio = in_flight, noise_ratio

    def cost(self, logs: Array) -> tuple[float, float, tuple[Array, Array]]:
        """Updates and seconds, both in units of L Δ / ε, and the slopes of their logarithms along each log p_c.

        The slopes are those of free chances, as if they need not sum to 1.
        """
        p, count, fewer = np.exp(logs), len(logs), self._tickets - 1
        demand, think = p * self.service, p * self.transfer
        queue = np.zeros((self._tickets + 1, count))  # mean tickets at each client, waiting or worked on, with l in all
        rate = np.zeros(self._tickets + 1)
        for tickets in range(1, self._tickets + 1):
            sojourn = demand * (1.0 + queue[tickets - 1])
            rate[tickets] = tickets / (sojourn.sum() + think.sum())
            queue[tickets] = rate[tickets] * sojourn
        held = queue + rate[:, None] * think  # the slope of log G_l along log p_c, G_l the sum over placements
        noise, noise_slope = float(np.sum(1.0 / p)), -1.0 / p
        # P(at least k tickets of J - 1 at c) = Π (rate_l demand_c), l = J - k … J - 1; a mean is the sum of these.
        waiting, wait_slope, tail = 0.0, np.zeros(count), 1.0 / p**2
        for k in range(1, fewer + 1):
            tail = tail * (rate[self._tickets - k] * demand)
            waiting += tail.sum()
            wait_slope += (k - 2.0) * tail + tail.sum() * (held[fewer - k] - held[fewer])
        travelling = rate[fewer] * self.transfer / p
        waiting += travelling.sum()
        wait_slope += travelling.sum() * (held[max(fewer - 1, 0)] - held[fewer]) - travelling
        noise, noise_slope = noise * self._ratio / count**2, noise_slope * self._ratio / count**2
        stale = float(np.sqrt(self._ratio * fewer * waiting)) / count
        stale_slope = stale * wait_slope / (2.0 * waiting) if waiting > 0.0 else np.zeros(count)
        updates = 1.0 + noise + stale
        slope = (noise_slope + stale_slope) / updates
        slowing = held[self._tickets] - held[fewer]
        return updates, updates / float(rate[self._tickets]), (slope, slope + slowing)
