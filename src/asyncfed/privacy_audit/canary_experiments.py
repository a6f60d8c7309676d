"""Small private experiments, one for each mode, in which a client takes part as often as its cap allows."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import Record
from asyncfed.core.types import Budget, Work
from asyncfed.engine.evaluation import Evaluation
from asyncfed.experiment import Experiment
from asyncfed.privacy.tree import tree_sensitivity
from asyncfed.rules import Noised, TreeNoised
from asyncfed.strategies import FedAsync, FedBuff
from asyncfed.strategies.participation_caps import ParticipationCaps
from asyncfed.uplinks import Clip, LocalNoise

CLIP = 1.0
CLIENTS = 2


class CanaryExperiment(Record):
    """What is run, and what is claimed of it.

    Args:
        mode: "central", "tree" or "local".
        experiment: with noise as it is.
        claimed_shift: mu that the account claims: a client cannot be told better than a shift of mu in N(0, 1).
        participations: how often each client takes part.
        releases: how many models are released after the first.
    """

    mode: str
    experiment: Experiment
    claimed_shift: float
    participations: int
    releases: int


def canary_experiment(
    mode: str, multiplier: float, participations: int, noise_fraction: float = 1.0
) -> CanaryExperiment:
    """The experiment of a mode. All work takes the same time, so that runs differ in their noise alone.

    Args:
        mode: "central" (`Noised` in FedBuff), "tree" (`TreeNoised`) or "local" (`LocalNoise` with FedAsync).
        multiplier: z, above 0, from which the claim is made.
        participations: how often the canary takes part, 1 or more.
        noise_fraction: what part of that noise is really added, above 0: less than 1 makes the claim false, which an
            audit must find out.

    >>> canary_experiment("central", multiplier=2.0, participations=4).claimed_shift
    1.0
    """
    if mode not in MODES:
        raise ConfigError(f'There is no mode "{mode}". {did_you_mean(mode, MODES)}')
    if not (multiplier > 0 and noise_fraction > 0):
        raise ConfigError(f"the noise is {multiplier:g} times {noise_fraction:g}; without noise nothing is hidden.")
    if participations < 1:
        raise ConfigError(f"participations is {participations}; the canary must take part at least once.")
    return MODES[mode](multiplier, participations, multiplier * noise_fraction)


def _central(multiplier: float, participations: int, real: float) -> CanaryExperiment:
    rule = Noised(clip=CLIP, multiplier=real, divisor=CLIENTS)
    experiment = _experiment(_buffered(rule), participations, participations)
    return CanaryExperiment("central", experiment, sqrt(participations) / multiplier, participations, participations)


def _tree(multiplier: float, participations: int, real: float) -> CanaryExperiment:
    rule = TreeNoised(clip=CLIP, multiplier=real, divisor=CLIENTS, releases=participations)
    experiment = _experiment(_buffered(rule), participations, participations)
    sensitivity = tree_sensitivity(participations, participations, 0)
    return CanaryExperiment("tree", experiment, sqrt(sensitivity) / multiplier, participations, participations)


def _local(multiplier: float, participations: int, real: float) -> CanaryExperiment:
    releases = CLIENTS * participations
    strategy = FedAsync(concurrency=CLIENTS, work=_work(LocalNoise(clip=CLIP, multiplier=real)))
    experiment = _experiment(strategy, participations, releases, counts="tickets")
    return CanaryExperiment("local", experiment, sqrt(participations) / multiplier, participations, releases)


def _buffered(rule: Noised | TreeNoised) -> FedBuff:
    work = _work(Clip(norm=CLIP))
    return FedBuff(concurrency=CLIENTS, buffer_size=CLIENTS, server_lr=1.0, work=work, rule=rule)


def _work(uplink: Clip | LocalNoise) -> Work:
    return Work(epochs=1, batch_size=1, uplink=(uplink,))


def _experiment(strategy: FedBuff | FedAsync, participations: int, releases: int, **how: str) -> Experiment:
    capped = ParticipationCaps(
        strategy=strategy,
        num_clients=CLIENTS,
        participations=participations,
        releases=releases,
        **how,  # type: ignore[arg-type]
    )
    updates = CLIENTS * participations
    return Experiment(
        name="canaries",
        num_clients=CLIENTS,
        strategy=capped,
        budget=Budget(updates=updates),
        evaluation=Evaluation(every=10**6),
    )


MODES: dict[str, Callable[[float, int, float], CanaryExperiment]] = {
    "central": _central,
    "tree": _tree,
    "local": _local,
}
"""How each mode's experiment is made."""
