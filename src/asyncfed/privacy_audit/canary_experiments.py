"""Small private experiments, one for each mode, in which a client takes part as often as its cap allows."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import UNSET, Config, Record, replace
from asyncfed.core.types import Budget, Work
from asyncfed.engine.evaluation import Evaluation
from asyncfed.experiment import Experiment
from asyncfed.privacy import Central, Claim, Local, Privacy, Setting, Tree
from asyncfed.strategies import FedAsync, FedBuff
from asyncfed.strategies.protocol import Strategy

CLIENTS = 2
WORK = Work(epochs=1, batch_size=1)


class Weakened(Config, tag_field="kind", tag="weakened"):
    """A mode that claims what the wrapped one claims and adds only part of its noise: what an audit must find out.

    Args:
        privacy: the mode whose claim is made.
        noise_fraction: what part of its noise is added, above 0.
    """

    privacy: Any
    noise_fraction: float
    unprotected_evaluation = False

    def claim(self, strategy: Strategy, setting: Setting) -> Claim:
        """The wrapped mode's, which is not kept."""
        claim: Claim = self.privacy.claim(strategy, setting)
        return claim

    def epsilon_after(self, claim: Claim, participations: int) -> float:
        """The wrapped mode's, which is not kept."""
        return float(self.privacy.epsilon_after(claim, participations))

    def compose(self, strategy: Strategy, setting: Setting) -> Strategy:
        """The wrapped mode's, with less noise."""
        multiplier = self.noise_fraction * self.claim(strategy, setting).multiplier
        composed: Strategy = replace(self.privacy, epsilon=UNSET, multiplier=multiplier).compose(strategy, setting)
        return composed


class CanaryExperiment(Record):
    """What is run, and what is claimed of it.

    Args:
        experiment: with the noise that is really added.
        claim: what it promises.
        num_clients: how many clients there are; all are in every release.
    """

    experiment: Experiment
    claim: Claim
    num_clients: int


def canary_experiment(
    mode: str, epsilon: float, participations: int, delta: float = 1e-5, noise_fraction: float = 1.0
) -> CanaryExperiment:
    """The experiment of a mode, composed as any private experiment is.

    All work takes the same time, so that runs differ in their noise alone. In the local mode the canary is alone, for
    what others send hides nothing.

    Args:
        mode: "central" or "tree", with FedBuff, or "local", with FedAsync.
        epsilon: the claim, above 0.
        participations: how often the canary takes part, 1 or more.
        delta: above 0 and below 1.
        noise_fraction: what part of the noise is really added, above 0: less than 1 makes the claim false.

    >>> round(canary_experiment("central", epsilon=2.0, participations=10).claim.multiplier, 8)
    6.30498856
    """
    if mode not in MODES:
        raise ConfigError(f'There is no mode "{mode}". {did_you_mean(mode, MODES)}')
    if not 0 < noise_fraction < inf:
        raise ConfigError(f"noise_fraction is {noise_fraction:g}; it must be positive, for without noise all is seen.")
    if participations < 1:
        raise ConfigError(f"participations is {participations}; the canary must take part at least once.")
    privacy = MODES[mode](epsilon, delta, participations)
    clients = 1 if mode == "local" else CLIENTS
    buffered = FedBuff(concurrency=CLIENTS, buffer_size=CLIENTS, server_lr=1.0, work=WORK)
    experiment = Experiment(
        name="canaries",
        num_clients=clients,
        strategy=FedAsync(concurrency=1, work=WORK) if mode == "local" else buffered,
        privacy=privacy if noise_fraction == 1 else Weakened(privacy=privacy, noise_fraction=noise_fraction),
        budget=Budget(updates=clients * participations),
        evaluation=Evaluation(every=10**6),
    )
    claim = experiment.privacy_claim()
    assert claim is not None
    return CanaryExperiment(experiment, claim, clients)


MODES: dict[str, Callable[[float, float, int], Privacy]] = {
    "central": lambda epsilon, delta, most: Central(epsilon=epsilon, delta=delta, participations=most),
    "tree": lambda epsilon, delta, most: Tree(epsilon=epsilon, delta=delta, participations=most, separation=0),
    "local": lambda epsilon, delta, most: Local(epsilon=epsilon, delta=delta, uploads=most),
}
"""The modes, by epsilon, delta and how often each client takes part."""
