"""Strategies by short names, with the work and the number at work that an experiment has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import replace, to_plain
from asyncfed.core.types import Schedule, Work
from asyncfed.registry import kinds
from asyncfed.rules import Scaffold
from asyncfed.strategies import (
    AFL,
    AFLGuard,
    CyclicWeightTransfer,
    Dispatching,
    FedAsync,
    FedAvg,
    FedBuff,
    FedCompass,
    PublishedScripts,
    Ringmaster,
)
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.schedules import ConstantRate, DelayAware

Maker = Callable[[int, Work, Schedule], Strategy]

STRATEGIES: dict[str, tuple[str, Maker]] = {
    "afl": (
        "AFL, mean of every client's latest model (Algorithm 1)",
        lambda tickets, work, rate: AFL(concurrency=tickets, work=work, schedule=rate),
    ),
    "afl_mixing": (
        "AFL, mixing by one half (the published server rule, with clients that download)",
        lambda tickets, work, rate: AFL(concurrency=tickets, aggregate="mixing", work=work, schedule=rate),
    ),
    "afl_delta_mean": (
        "AFL, average of deltas",
        lambda tickets, work, rate: AFL(concurrency=tickets, aggregate="delta_mean", work=work, schedule=rate),
    ),
    "afl_delta_sum": (
        "AFL, sum of deltas (the proofs' rule)",
        lambda tickets, work, rate: AFL(concurrency=tickets, aggregate="delta_sum", work=work, schedule=rate),
    ),
    "sync": (
        "synchronous FL, equal weights, constant rate (the paper's rival)",
        lambda tickets, work, rate: FedAvg(cohort_size=tickets, weighting="equal", work=work),
    ),
    "fedavg": (
        "FedAvg, weights by samples",
        lambda tickets, work, rate: FedAvg(cohort_size=tickets, work=work),
    ),
    "fedprox": (
        "FedProx, proximal term 0.01",
        lambda tickets, work, rate: FedAvg(cohort_size=tickets, work=replace(work, proximal=0.01)),
    ),
    "fedasync": (
        "FedAsync, mixing 0.6 with a polynomial discount",
        lambda tickets, work, rate: FedAsync(concurrency=tickets, work=work),
    ),
    "scaffold_async": (
        "FedAsync, mixing 0.4, with the corrections of SCAFFOLD: clients that differ do not pull the model apart",
        lambda tickets, work, rate: FedAsync(
            concurrency=tickets, mixing=0.4, work=replace(work, proximal=0.0), schedule=rate, rule=Scaffold()
        ),
    ),
    "scaffold": (
        "SCAFFOLD, synchronous, equal weights",
        lambda tickets, work, rate: FedAvg(
            cohort_size=tickets,
            weighting="equal",
            work=replace(work, proximal=0.0),
            schedule=rate,
            rule=Scaffold(),
        ),
    ),
    "fedbuff": (
        "FedBuff, a buffer as large as the number in flight, at most 10",
        lambda tickets, work, rate: FedBuff(concurrency=tickets, buffer_size=min(10, tickets), work=work),
    ),
    "fedcompass": (
        "FedCompass: everybody at work, with as many local steps as make groups arrive together",
        lambda tickets, work, rate: FedCompass(work=work),
    ),
    "ringmaster": (
        "Ringmaster ASGD: changes up to J versions old, older work is begun anew",
        lambda tickets, work, rate: Ringmaster(concurrency=tickets, staleness_threshold=tickets, work=work),
    ),
    "aflguard": (
        "AFLGuard, which trusts client 0: changes that differ too much from its own are dropped",
        lambda tickets, work, rate: AFLGuard(concurrency=tickets, train_trusted=True, work=work),
    ),
    "cyclic": (
        "Cyclic Weight Transfer",
        lambda tickets, work, rate: CyclicWeightTransfer(round_length=tickets, work=work),
    ),
    "published": (
        "the published scripts, AFL mode: barrier rounds, clients never download, halving",
        lambda tickets, work, rate: PublishedScripts(
            mode="afl", cohort_size=tickets, work=replace(work, start="own"), schedule=rate
        ),
    ),
    "published_sync": (
        "the published scripts, synchronous mode: clients never download, plain mean",
        lambda tickets, work, rate: PublishedScripts(
            mode="sync", cohort_size=tickets, work=replace(work, start="own"), schedule=ConstantRate()
        ),
    ),
}


def strategy_named(name: str, tickets: int, work: Work, rate: Schedule | None = None) -> Strategy:
    """A strategy by its short name, or by its kind if it is registered.

    Args:
        name: one of `STRATEGIES`, or the kind of a registered strategy.
        tickets: how many clients are at work at once, or make a cohort.
        work: what each client is asked to do.
        rate: the paper's schedule of the learning rate, for strategies that use it; None for `DelayAware()`.

    Returns:
        The strategy.

    >>> strategy_named("afl_mixing", 5, Work()).aggregate
    'mixing'
    """
    if name in STRATEGIES:
        return STRATEGIES[name][1](tickets, work, rate or DelayAware())
    registered = kinds("strategy")
    if name not in registered:
        raise ConfigError(f'There is no strategy "{name}". {did_you_mean(name, {**STRATEGIES, **registered})}')
    made: Any = registered[name]
    wanted = {"concurrency": tickets, "cohort_size": tickets, "work": work}
    try:
        named: Strategy = made(**{key: value for key, value in wanted.items() if key in made.__struct_fields__})
    except TypeError as error:
        raise ConfigError(
            f'The strategy "{name}" has settings without a default ({error}). Write it in a TOML file instead.'
        ) from error
    return named


Rate = Literal["same", "own", "constant"]


def strategy_like(name: str, other: Strategy, rate: Rate = "own") -> Strategy:
    """A strategy by its short name, with the local work and the number at work of another one.

    Args:
        name: as for `strategy_named`.
        other: the strategy whose work, number of clients at work and schedule are taken over.
        rate: which schedule of the learning rate it gets: its `own` (the paper's: AFL decays, synchronous FL does not),
            the `same` as the other one, or a `constant` one.

    Returns:
        The strategy.
    """
    tickets, schedule = 1, None
    if isinstance(other, Dispatching):
        tickets, schedule = other.dispatch.tickets, other.schedule
        if other.dispatch.manner == "sequential":
            tickets = other.round_size(num_clients=1)
    work = replace(other.work, start="server") if other.work.start == "own" else other.work
    if rate == "constant":
        schedule = ConstantRate()
    named = strategy_named(name, tickets, work, schedule)
    if rate == "own" or "schedule" not in to_plain(named):
        return named
    return replace(named, schedule=schedule)
