"""What would make an epsilon untrue, refused before the run, with the reason."""

from __future__ import annotations

from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, kind_of
from asyncfed.core.server import Server
from asyncfed.core.types import Dispatch, Merge, Report, Work
from asyncfed.privacy.protocol import Setting
from asyncfed.rules.protocol import SERVER_ROWS, rule_of, trains_on
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.samplers import WorkCheckingSampler
from asyncfed.strategies.single_updates import MEASURED, why_single_updates

ARRIVALS_PER_MERGE = 8
"""So many times the updates of a merge may arrive before there must be one."""


def name_of(part: object) -> str:
    """What a user calls a part: its kind."""
    return kind_of(type(part)) or type(part).__name__


def check_measurements(setting: Setting, unprotected_evaluation: bool) -> None:
    """Refuse decisions by measurements on clients' data, unless it is said that these are not protected."""
    if unprotected_evaluation:
        return
    if setting.stops_by_measurement:
        raise ConfigError(
            "stopping decides by a measurement on clients' data, so that when the run ends tells something about them. "
            "Stop by the budget or by energy, or set privacy.unprotected_evaluation, and say so to the clients."
        )
    if setting.measures_drift:
        raise ConfigError("evaluation.drift measures single clients' trainings, which nothing protects. Remove it.")


def check_work(work: Work) -> None:
    """Refuse work by which clients tell more than their change."""
    for name in MEASURED:
        if getattr(work, name) is True:
            raise ConfigError(
                f"work.{name} makes clients report a number about their own data, which has no noise. Remove it."
            )
    if work.patience is not UNSET:
        raise ConfigError(
            "work.patience ends a training by the loss on the client's data, so that how long it takes tells something "
            "about them. Remove it."
        )
    if work.start == "own":
        raise ConfigError(
            'work.start is "own": each client goes on from its own model, which no noise has been added to. Use '
            'start = "server".'
        )


def check_selection(strategy: Strategy) -> None:
    """Refuse samplers that learn from what clients report."""
    sampler = getattr(strategy, "sampler", None)
    if getattr(strategy, "observes", False) or isinstance(sampler, WorkCheckingSampler):
        raise ConfigError(
            f"strategy.sampler, {name_of(sampler)}, chooses clients by what they reported, so that its choice tells "
            "something about their data. Use uniform_idle, shuffled_cycle or fair."
        )


def check_server_rows(strategy: Strategy, setting: Setting) -> None:
    """Refuse rules by which the server trains on clients' rows."""
    client = trains_on(rule_of(strategy))
    if client is None or (client == SERVER_ROWS and not setting.shares_rows):
        return
    whose = "rows that are drawn from clients'" if client == SERVER_ROWS else f"the rows of client {client}"
    raise ConfigError(
        f"strategy.rule trains on {whose} at the server, which no noise protects. Give the server rows of its own: "
        'trusted = {kind = "file", file = "trusted.npz"}.'
    )


def check_sums(strategy: Strategy) -> None:
    """Refuse strategies that need single updates, where noise is added to sums."""
    why = why_single_updates(strategy)
    if why is not None:
        raise ConfigError(
            f"privacy adds noise to sums of many updates, and {name_of(strategy)} does not merge such: {why}. Use "
            'fedbuff, or privacy.kind = "local", where each client adds the noise itself.'
        )


def check_merges(strategy: Strategy, num_clients: int, divisor: int) -> None:
    """Refuse a strategy whose merges are no sums of changes with weights of 1/K at most, K fixed.

    It is driven through some arrivals, without any training, with equal and with unequal numbers of samples.
    """
    equal = _first_merges(strategy, [1] * num_clients, divisor)
    unequal = _first_merges(strategy, [1 + 9 * (client % 2) for client in range(num_clients)], divisor)
    if not equal:
        raise ConfigError(
            f"{name_of(strategy)} does not merge by the number of arrivals, so that what a merge divides by is not "
            "known beforehand. Use fedbuff."
        )
    for merge in [*equal, *unequal]:
        if merge.of == "model" or merge.combiner is not None or merge.keep != 1.0:
            raise ConfigError(
                f"{name_of(strategy)} merges models, which are of any length, and privacy needs changes, which can be "
                "clipped. Use fedbuff."
            )
    if equal != unequal:
        raise ConfigError(
            f"{name_of(strategy)} weighs updates by their clients' samples, so that what a merge divides by depends on "
            "the data. Use equal weights, as fedbuff has."
        )
    largest = max(weight for merge in equal for weight in merge.weights)
    if largest > (1.0 + 1e-12) / divisor or min(weight for merge in equal for weight in merge.weights) < 0:
        raise ConfigError(
            f"{name_of(strategy)} merges {divisor} updates with weights up to {largest:.4g}, and the noise is for 1/"
            f"{divisor} at most. Set strategy.server_lr to 1 or less; a larger step belongs after the noise "
            '(rule = {kind = "optimised"}).'
        )


def _first_merges(strategy: Strategy, num_examples: list[int], divisor: int) -> list[Merge]:
    """Some merges, tickets arriving in turn from either end so that some are stale. Only numbers move."""
    server, merges, last_first = Server(strategy, num_examples), list[Merge](), False
    outputs: list[Any] = list(server.start())
    clients = {output.ticket: output.client for output in outputs if isinstance(output, Dispatch)}
    for arrival in range(ARRIVALS_PER_MERGE * divisor):
        if server.stopped is not None or not server.outstanding:
            break
        ticket = list(server.outstanding)[-1 if last_first else 0]
        last_first = not last_first
        client = clients[ticket]
        outputs = list(server.receive(Report(ticket, client, float(arrival), 1.0, num_examples[client])))
        clients |= {output.ticket: output.client for output in outputs if isinstance(output, Dispatch)}
        merges += [output for output in outputs if isinstance(output, Merge)]
    return merges
