"""Ways to choose clients, and to weigh them, put into a strategy that keeps all else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import replace
from asyncfed.rules.protocol import rule_of
from asyncfed.rules.qfair import QFair
from asyncfed.strategies import Dispatching, Fair, Sampler, UniformIdle
from asyncfed.strategies.minimum_participation import MinimumParticipation
from asyncfed.strategies.oort import OortSampler
from asyncfed.strategies.pisces import PiscesSampler
from asyncfed.strategies.power_of_choice import PowerOfChoice
from asyncfed.strategies.protocol import Strategy

BASELINE = "uniform"

SELECTIONS: dict[str, str] = {
    BASELINE: "uniformly among idle clients, so fast ones more often",
    "fair": "idle clients with the fewest tickets",
    "minimum": "uniformly, but nobody idle waits for more than two tickets for each client",
    "oort": "fast clients with large losses",
    "oort_minimum": "the same, but nobody idle waits for more than two tickets for each client",
    "pisces": "clients with large losses and little staleness",
    "power_of_choice": "the larger loss of two candidates for each ticket",
    "qfair": "uniformly; clients with larger losses count more in a merge (q = 1)",
}
"""Names and what they mean, in the order in which they are shown."""


def with_selection(name: str, host: Strategy) -> Strategy:
    """The strategy with another way to choose clients, or to weigh them.

    Args:
        name: one of `SELECTIONS`.
        host: the strategy that dispatches and merges; it has a `sampler`, and for "qfair" a `rule`.

    Returns:
        The strategy, whose work measures what the selection needs.

    Raises:
        ConfigError: there is no such selection, or the strategy cannot have it.
    """
    if name not in SELECTIONS:
        raise ConfigError(f'There is no selection "{name}". {did_you_mean(name, SELECTIONS)}')
    changeable: Any = host
    settings = getattr(type(host), "__struct_fields__", ())
    if not isinstance(host, Dispatching) or "sampler" not in settings:
        raise ConfigError(
            f"{type(host).__name__} has no `sampler` of its own, so clients cannot be chosen in another way. Choose a "
            "strategy that has one, such as fedbuff, fedasync or fedavg."
        )
    work = host.work
    if name == "qfair":
        if "rule" not in settings:
            raise ConfigError(f"{type(host).__name__} has no `rule`, so clients cannot be weighed by qfair.")
        inner = rule_of(host)
        rule = QFair() if inner is None else QFair(rule=inner)
        weighed: Strategy = replace(changeable, sampler=UniformIdle(), rule=rule, work=replace(work, start_loss=True))
        return weighed
    at_once = host.dispatch.tickets if host.dispatch.manner == "cohort" else 1
    samplers: dict[str, Callable[[], Sampler]] = {
        BASELINE: UniformIdle,
        "fair": Fair,
        "minimum": MinimumParticipation,
        "oort": OortSampler,
        "oort_minimum": lambda: MinimumParticipation(sampler=OortSampler()),
        "pisces": PiscesSampler,
        "power_of_choice": lambda: PowerOfChoice(candidates=2 * at_once),
    }
    if name in ("oort", "oort_minimum", "pisces"):
        work = replace(work, start_rms=True)
    elif name == "power_of_choice":
        work = replace(work, start_loss=True)
    chosen: Strategy = replace(changeable, sampler=samplers[name](), work=work)
    return chosen
