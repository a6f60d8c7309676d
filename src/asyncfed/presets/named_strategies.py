"""Strategies by short names, with the work and the number at work that an experiment has."""

from __future__ import annotations

from typing import Any, Literal

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import replace, to_plain
from asyncfed.core.types import Schedule, Work
from asyncfed.registry import kinds
from asyncfed.strategies import Dispatching
from asyncfed.strategies.algorithm import Maker, algorithms
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.schedules import ConstantRate, DelayAware

STRATEGIES: dict[str, tuple[str, Maker]] = {
    name: (algorithm.summary, algorithm.make) for name, algorithm in algorithms().items()
}
"""What each name stands for, and how it is made. See `asyncfed.strategies.algorithm`."""


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
