"""ClusterVariation: how step times vary in a shared cluster; lasting factors, noise that remembers, stragglers."""

from __future__ import annotations

from math import exp, log1p, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import purpose_key
from asyncfed.core.record import Config
from asyncfed.delays.autocorrelated_noise import autocorrelated_normal, halving_weights
from asyncfed.delays.checks import require_non_negative, require_positive, require_probability
from asyncfed.delays.client_traits import device_trait
from asyncfed.delays.delay_protocols import Array
from asyncfed.delays.devices import Device
from asyncfed.delays.distributions import (
    LARGEST_UNIT,
    Distribution,
    LogNormal,
    Uniform,
    require_positive_draws,
)
from asyncfed.delays.keyed_draws import client_unit
from asyncfed.delays.variation import TicketFactor
from asyncfed.registry import register

PLACES_A_TURN = 4
"""The noise has so many values in a turn; tickets of a client in the same quarter of a turn have the same one."""

LARGEST_NOISE = 10.0
"""Of the logarithm; a factor of e**10 is no noise any more, and much more is too large for a float."""

LARGEST_SPREAD = 1000.0


class _Client(NamedTuple):
    """What a client keeps for a run."""

    factor: float
    noise: float
    weights: tuple[tuple[float, float], ...]
    slow_from: int
    """The ticket from which it is a straggler; -1 if it never is one."""
    slow_factor: float


@register("variation")
class ClusterVariation(Config, tag_field="kind", tag="cluster"):
    """The factors on computing time that workers of a shared cluster have, ticket by ticket.

        factor = lasting_c * split_c * exp(noise_c * x_c(t)) * (straggler_c if t >= straggler_turn_c else 1)
        t = ticket / num_clients,    corr(x_c(t), x_c(t + 1)) = correlation_c

    `lasting_c` is log-normal with median 1. A part of the clients is split: half of it is fast, the other half slow.
    x_c is a stationary AR(1) process, normal with mean 0 and variance 1, which is a function of seed, client and ticket
    alone (`autocorrelated_noise`). A straggler appears in the middle of a run and stays.

    Time is counted in turns of `num_clients` tickets, in which each client has one ticket on average, however many are
    out at once: so a ticket takes as long under any strategy. A client that is given tickets more often than that sees
    less change between two of them.

    Args:
        spread: coefficient of variation of the lasting factor between clients, 0 to 1000.
        noise: distribution of the standard deviation of the logarithm of a client's seconds, drawn once per client;
            every draw from 0 to below 10.
        correlation: distribution of the correlation of that logarithm at one turn's distance, drawn once per client;
            every draw from 0 to below 1.
        split_share: share of the clients that are split into a fast and a slow half, 0 to 1, kept exactly.
        split_fast: the factor of the fast half, above 0.
        split_slow: distribution of the factors of the slow half, drawn once per client; every draw above 0.
        straggler_share: share of the clients that become stragglers, 0 to 1, kept exactly.
        straggler_slowness: distribution of their factor from then on, drawn once per client; every draw above 0.
        straggler_turn: distribution of the turn at which that happens, drawn once per client.

    The defaults are taken from mini-batch times of Alibaba's PAI cluster (2020, CC-BY-4.0; Xiao et al., "AntMan", OSDI
    2020): see docs/delays.md for what is known and what is assumed.

    >>> factor = ClusterVariation().bind(num_clients=10, seed=0)
    >>> [round(factor(3, ticket), 2) for ticket in (3, 13, 23, 33)]
    [1.07, 1.09, 1.09, 1.1]
    """

    spread: float = 0.062
    noise: Distribution = Uniform(low=0.01, high=0.1)
    correlation: Distribution = Uniform(low=0.5, high=0.9)
    split_share: float = 0.25
    split_fast: float = 0.45
    split_slow: Distribution = Uniform(low=1.5, high=2.0)
    straggler_share: float = 0.1
    straggler_slowness: Distribution = Uniform(low=1.5, high=4.5)
    straggler_turn: Distribution = LogNormal(median=20.0, sigma=0.7)

    def __post_init__(self) -> None:
        require_non_negative("cluster.spread", self.spread)
        if self.spread > LARGEST_SPREAD:
            raise ConfigError(
                f"cluster.spread is {self.spread}; a coefficient of variation must be at most {LARGEST_SPREAD:g}."
            )
        require_probability("cluster.split_share", self.split_share)
        require_positive("cluster.split_fast", self.split_fast)
        require_probability("cluster.straggler_share", self.straggler_share)
        require_positive_draws("cluster.split_slow", self.split_slow)
        require_positive_draws("cluster.straggler_slowness", self.straggler_slowness)
        largest = self.correlation.draw(LARGEST_UNIT)
        if not 0.0 <= largest < 1.0:
            raise ConfigError(
                f"cluster.correlation is {self.correlation}, whose largest draw is {largest:g}; every draw must be "
                "from 0 to below 1. Lower its upper end."
            )
        largest = self.noise.draw(LARGEST_UNIT)
        if not 0.0 <= largest < LARGEST_NOISE:
            raise ConfigError(
                f"cluster.noise is {self.noise}, whose largest draw is {largest:g}; a standard deviation of the "
                f"logarithm must be from 0 to below {LARGEST_NOISE:g}. Lower its upper end."
            )

    def bind(self, num_clients: int, seed: int) -> TicketFactor:
        """The factors of a run with these clients and this seed."""
        return BoundClusterVariation(self, num_clients, seed).factor

    def mean_factors(self, num_clients: int, seed: int) -> Array:
        """`lasting * split * exp(noise**2 / 2)`, times the slowness of stragglers: the mean in the long run."""
        bound = BoundClusterVariation(self, num_clients, seed)
        of_clients = [bound.client(client) for client in range(num_clients)]
        return np.array([c.factor * exp(0.5 * c.noise**2) * c.slow_factor for c in of_clients])

    def simplifications(self) -> tuple[str, ...]:
        """Noise that remembers has no place in a mean; stragglers count as they are in the end."""
        found = ["a client's durations are correlated"]
        if self.straggler_share > 0:
            found.append("stragglers count as slow from the beginning")
        return tuple(found)


class BoundClusterVariation:
    """`ClusterVariation` of one run.

    Args:
        variation: the description.
        num_clients: the clients known at the start, at least 1; as many tickets are a turn.
        seed: the seed of the run.
    """

    def __init__(self, variation: ClusterVariation, num_clients: int, seed: int) -> None:
        self._variation = variation
        self._turn = num_clients
        half = variation.split_share / 2
        halves = (Device(name="fast", share=half), Device(name="slow", share=half))
        straggler = Device(name="straggler", share=variation.straggler_share)
        self._split = device_trait(halves, num_clients, seed, "cluster split")
        self._straggler = device_trait((straggler,), num_clients, seed, "cluster straggler")
        self._noise_key = purpose_key(seed, "cluster")
        self._keys = {
            part: purpose_key(seed, f"cluster {part}")
            for part in ("lasting", "noise", "correlation", "slow", "slowness", "turn")
        }
        self._clients: dict[int, _Client] = {}

    def factor(self, client: int, ticket: int) -> float:
        """The factor on the computing time of this ticket."""
        kept = self._clients.get(client)
        if kept is None:
            kept = self._clients[client] = self.client(client)
        factor, noise, weights, slow_from, slow_factor = kept
        if noise > 0.0:
            place = ticket * PLACES_A_TURN // self._turn
            factor *= exp(noise * autocorrelated_normal(self._noise_key, client, place, weights))
        return factor * slow_factor if 0 <= slow_from <= ticket else factor

    def client(self, client: int) -> _Client:
        """What this client keeps for the run; computed from its keyed numbers, and remembered only for speed."""
        made = self._variation
        units = {part: client_unit(key, client) for part, key in self._keys.items()}
        sigma = sqrt(log1p(made.spread**2))
        lasting = exp(sigma * NormalDist().inv_cdf(units["lasting"]))
        half = self._split.of(client).name
        if half == "fast":
            lasting *= made.split_fast
        elif half == "slow":
            lasting *= made.split_slow.draw(units["slow"])
        slow_from, slow_factor = -1, 1.0
        if self._straggler.of(client).name == "straggler":
            slow_from = int(made.straggler_turn.draw(units["turn"]) * self._turn)
            slow_factor = made.straggler_slowness.draw(units["slowness"])
        return _Client(
            factor=lasting,
            noise=made.noise.draw(units["noise"]),
            weights=halving_weights(made.correlation.draw(units["correlation"]) ** (1.0 / PLACES_A_TURN)),
            slow_from=slow_from,
            slow_factor=slow_factor,
        )
