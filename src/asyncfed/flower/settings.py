"""What a run on Flower may be told in its run configuration (`[tool.flwr.app.config]`, or `flwr run --run-config`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, ValidationError, from_plain, replace, to_plain
from asyncfed.experiment import Experiment, changed
from asyncfed.live.checks import Limits


class FlowerSettings(Config):
    """`journal` is the run's file on the server's machine; one that is there already is continued.

    `ttl`: seconds after which a task nobody answered is given up. `prefetch`: tasks a node may hold at once; with 2 it
    goes on without waiting for the next message. `wait_nodes`: how many nodes must be there before the run begins.
    `poll`: seconds between two looks for replies. `return_seconds`: how long a restarted server waits for a node it
    knew before it counts it as gone.
    """

    journal: str = ""
    ttl: float = 600.0
    prefetch: int = 1
    wait_nodes: int = 1
    poll: float = 0.25
    return_seconds: float = 120.0
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        for name in ("ttl", "prefetch", "wait_nodes", "poll", "return_seconds"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be positive.")


def settings_of(run_config: Mapping[str, Any]) -> FlowerSettings:
    """Flower's flat keys, `wait-nodes` or `limits.largest-norm`, as settings. Keys of the app's own are left alone."""
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


def fetching_ahead(experiment: Experiment, depth: int) -> Experiment:
    """The experiment with so many tickets per node: work for `depth` times as many, handed to the shortest queue."""
    if depth == 1:
        return experiment
    strategy = to_plain(experiment.strategy)
    if "concurrency" not in strategy or "sampler" not in strategy:
        raise ConfigError(
            f"prefetch is {depth}, but {strategy['kind']} hands out work in rounds, so that nothing could be "
            "fetched ahead. Set prefetch to 1, or use afl, fedasync or fedbuff."
        )
    return changed(
        experiment,
        {
            "strategy.concurrency": strategy["concurrency"] * depth,
            "strategy.sampler": {"kind": "shortest_queue", "depth": depth},
        },
    )
