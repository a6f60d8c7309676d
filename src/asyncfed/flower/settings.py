"""The settings of a run on Flower: its run configuration (`[tool.flwr.app.config]`, or `flwr run --run-config`)."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, ValidationError, from_plain, kind_of, replace, to_plain
from asyncfed.experiment import Experiment, changed
from asyncfed.live.checks import Limits
from asyncfed.strategies.dispatch import Dispatching
from asyncfed.strategies.wrapping import Wrapper

VECTORS_SENT = 3
"""Vectors as long as the model that a task sends, both ways together: the model, what the rule sends along, the answer.
A codec sends less."""


class FlowerSettings(Config):
    """Settings of a run on Flower.

    Args:
        journal: The run's file on the server's machine; one that exists is continued.
        ttl: Seconds after which a task that was not answered is given up, beside the time that its vectors need on the
            slowest line; positive.
        least_bandwidth: Bytes a second of the slowest line between a node and the SuperLink, either way: a task
            is given the time to send the model there and back, and one more vector, over this line; positive.
        prefetch: Tasks a node may hold at once; with 2 it continues without waiting for the next message; at least 1.
        wait_nodes: How many nodes must be there before the run begins; at least 1. With data of the nodes' own all must
            be there, but for `late_nodes`.
        late_nodes: With data of the nodes' own, how many may come after the run has begun; at least 0.
        poll: Seconds between two queries for replies; positive.
        robust: Whether the strategy is to withstand clients that send false updates; see `presets.make_robust`.
        return_seconds: How long a restarted server waits for a node it knew before the client has left; positive.
        limits: What a result may be like.
    """

    journal: str = ""
    ttl: float = 600.0
    least_bandwidth: float = 1e6
    prefetch: int = 1
    wait_nodes: int = 1
    late_nodes: int = 0
    poll: float = 0.25
    return_seconds: float = 120.0
    robust: bool = False
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        for name in ("ttl", "least_bandwidth", "prefetch", "wait_nodes", "poll", "return_seconds"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be positive.")
        if self.late_nodes < 0:
            raise ConfigError(f"late_nodes is {self.late_nodes}; it must be 0 or more.")

    def with_model(self, model_bytes: int) -> FlowerSettings:
        """These settings for a model of that size: `ttl`, and with it a ticket's limit, grows by what sending takes."""
        ttl = self.ttl + VECTORS_SENT * model_bytes / self.least_bandwidth
        limits = replace(self.limits, ticket_seconds=ttl, least_bandwidth=inf)  # the way is in `ttl` already
        return replace(self, ttl=ttl, limits=limits)


def read_settings(run_config: Mapping[str, Any]) -> FlowerSettings:
    """Settings from Flower's flat keys, `wait-nodes` or `limits.largest-norm`. Keys of the app's own are ignored."""
    plain: dict[str, Any] = {"limits": {}}
    known = to_plain(FlowerSettings()).keys()
    for key, value in run_config.items():
        name, _, inner = key.replace("-", "_").partition(".")
        if name == "limits" and inner:
            plain["limits"][inner] = value
        elif name in known:
            plain[name] = value
    try:
        settings = from_plain(plain, FlowerSettings)
    except ValidationError as error:
        raise ConfigError(f"The run configuration cannot be used: {error}.") from error
    return replace(settings, limits=replace(settings.limits, ticket_seconds=settings.ttl))


def with_prefetch(experiment: Experiment, depth: int) -> Experiment:
    """The experiment with `depth` tickets per node: so many times the concurrency, dispatched to the shortest queue."""
    if depth == 1:
        return experiment
    strategy = experiment.strategy
    policy = strategy.dispatch if isinstance(strategy, Dispatching) else None
    if policy is None or policy.manner != "keep_busy":
        raise ConfigError(
            f"prefetch is {depth}, but {kind_of(type(strategy))} dispatches work in rounds, so that nothing could be "
            "fetched ahead. Set prefetch to 1, or use afl, fedasync or fedbuff."
        )
    if strategy.work.remembers:
        raise ConfigError(
            f"prefetch is {depth}, but clients remember something between their tasks (work.uplink, work.downlink, "
            "work.start), which is still changing while they are busy. Set prefetch to 1."
        )
    path = "strategy"
    while isinstance(strategy, Wrapper):  # the wrapped strategy is the one with a concurrency and a sampler
        path, strategy = f"{path}.strategy", strategy.strategy
    sampler = {"kind": "shortest_queue", "depth": depth}
    return changed(experiment, {f"{path}.concurrency": policy.tickets * depth, f"{path}.sampler": sampler})
