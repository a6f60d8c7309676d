"""What is searched of a strategy: those of a few settings that it has, each with a few levels in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.record import UNSET, Record, UnsetType, replace, to_plain
from asyncfed.core.types import Work
from asyncfed.strategies.protocol import Strategy

RATE_FACTORS = tuple(2.0**power for power in range(-4, 5))
SHARES = (0.125, 0.25, 0.5, 1.0)
WORK_FACTORS = (1 / 16, 1 / 4, 1 / 2, 1.0, 2.0, 4.0)
FEWEST_STEPS = 4
"""A part of an epoch is worth trying if it has at least so many mini-batch steps."""

MIXINGS = (0.2, 0.4, 0.6, 0.8, 1.0)
BOUND_FACTORS = (0.5, 1.0, 2.0, 4.0)


class Choice(Record):
    """A setting that is searched.

    Args:
        name: what it is called in tables.
        levels: its values in order, at least two; None, where it occurs, is the last: no bound.
        default: the level that the strategy has by itself, or the one nearest to it.
        apply: the strategy with this value of the setting.
    """

    name: str
    levels: tuple[Any, ...]
    default: int
    apply: Callable[[Strategy, Any], Strategy]


class Space(Record):
    """A strategy by name and all that is searched of it.

    Args:
        name: its name.
        strategy: the strategy with its own settings.
        choices: what is searched, in the order in which it is applied: a bound may be a multiple of a concurrency.
    """

    name: str
    strategy: Strategy
    choices: tuple[Choice, ...]

    @property
    def default(self) -> tuple[int, ...]:
        """The levels nearest to the strategy's own settings."""
        return tuple(choice.default for choice in self.choices)

    @property
    def size(self) -> int:
        """How many settings there are."""
        count = 1
        for choice in self.choices:
            count *= len(choice.levels)
        return count

    def at(self, levels: tuple[int, ...]) -> Strategy:
        """The strategy at these levels."""
        strategy = self.strategy
        for choice, level in zip(self.choices, levels, strict=True):
            strategy = choice.apply(strategy, choice.levels[level])
        return strategy

    def describe(self, levels: tuple[int, ...]) -> dict[str, Any]:
        """The settings' values at these levels, by name."""
        return read_settings(self.at(levels), tuple(choice.name for choice in self.choices))

    def neighbours(self, levels: tuple[int, ...]) -> list[tuple[int, ...]]:
        """All settings that differ by one level in one choice."""
        found = []
        for place, choice in enumerate(self.choices):
            for level in (levels[place] - 1, levels[place] + 1):
                if 0 <= level < len(choice.levels):
                    found.append((*levels[:place], level, *levels[place + 1 :]))
        return found

    def second_neighbours(self, levels: tuple[int, ...]) -> list[tuple[int, ...]]:
        """All settings that differ by one level in each of two choices."""
        near = self.neighbours(levels)
        found = [far for each in near for far in self.neighbours(each)]
        differing = [far for far in found if sum(a != b for a, b in zip(far, levels, strict=True)) == 2]
        return list(dict.fromkeys(differing))


def search_space(name: str, strategy: Strategy, num_examples: NDArray[np.int64]) -> Space:
    """What is searched of a strategy.

    | setting | levels |
    |---|---|
    | `work.learning_rate` | 1/16 to 16 times the strategy's own, in factors of 2 |
    | `concurrency`, `cohort_size` | an eighth, a quarter, a half, all of the clients |
    | `work.epochs`, `work.steps` | 1/16 to 4 times the strategy's own; parts of an epoch in steps |
    | `buffer_size` | an eighth, a quarter, a half, all of the concurrency |
    | `mixing` | 0.2 to 1, where it is used |
    | `max_staleness` | 1/2 to 4 times the concurrency, or no bound |
    | `staleness_threshold` | 1/2 to 4 times the concurrency |
    | `max_steps` | 1/2 to 4 times the strategy's own, with `min_steps` in proportion |
    | `weighting` of FedAvg | by samples or equal |

    Args:
        name: the strategy's name.
        strategy: the strategy, with the work that rates and epochs are multiples of.
        num_examples: the rows of each client.

    Returns:
        The space.
    """
    num_clients = len(num_examples)
    fields = to_plain(strategy)
    work = strategy.work
    choices = [_choice("rate", [factor * work.learning_rate for factor in RATE_FACTORS], work.learning_rate, _set_rate)]
    for field in ("concurrency", "cohort_size"):
        if field in fields:
            levels = [max(1, round(share * num_clients)) for share in SHARES]
            choices.append(_choice(field, levels, fields[field], _setter(field)))
    if "max_steps" in fields:
        levels = [round(factor * fields["max_steps"]) for factor in BOUND_FACTORS]
        choices.append(_choice("max_steps", levels, fields["max_steps"], _set_steps))
    else:
        amounts, own = _work_levels(work, num_examples)
        choices.append(_choice("local work", amounts, own, _set_work))
    if "buffer_size" in fields:
        choices.append(_relative("buffer_size", SHARES, fields))
    if "mixing" in fields and fields.get("aggregate", "mixing") == "mixing":
        choices.append(_choice("mixing", list(MIXINGS), fields["mixing"], _setter("mixing")))
    if "staleness_threshold" in fields:
        choices.append(_relative("staleness_threshold", BOUND_FACTORS, fields))
    if "max_staleness" in fields and "concurrency" in fields:
        choices.append(_relative("max_staleness", (*BOUND_FACTORS, None), fields))
    if "cohort_size" in fields and "weighting" in fields:
        choices.append(_choice("weighting", ["equal", "samples"], fields["weighting"], _setter("weighting")))
    return Space(name, strategy, tuple(choice for choice in choices if len(choice.levels) > 1))


def _work_levels(work: Work, num_examples: NDArray[np.int64]) -> tuple[list[str], str]:
    """Amounts of local work, and the one that the work has; as texts, for epochs and steps are different settings."""
    if work.steps is not UNSET:
        steps = work.steps
        return [work_text(1, max(1, round(factor * steps))) for factor in WORK_FACTORS], work_text(1, steps)
    mean = float(np.mean(-(-num_examples // work.batch_size)))
    levels = []
    for factor in WORK_FACTORS:
        epochs = factor * work.epochs
        if epochs >= 1:
            levels.append(work_text(round(epochs)))
        elif epochs * mean >= FEWEST_STEPS:
            levels.append(work_text(1, round(epochs * mean)))
    return levels, work_text(work.epochs)


def work_text(epochs: int, steps: int | UnsetType = UNSET) -> str:
    """An amount of local work in words.

    >>> work_text(2), work_text(1, 32)
    ('2 epochs', '32 steps')
    """
    return f"{epochs} epoch{'s'[: epochs != 1]}" if steps is UNSET else f"{steps} step{'s'[: steps != 1]}"


def read_settings(strategy: Strategy, names: tuple[str, ...]) -> dict[str, Any]:
    """The values of searched settings in a strategy, by their names."""
    fields = to_plain(strategy)
    work = strategy.work
    fields |= {"rate": work.learning_rate, "local work": work_text(work.epochs, work.steps)}
    return {name: fields[name] for name in names}


def _choice(name: str, levels: list[Any], own: Any, apply: Callable[[Strategy, Any], Strategy]) -> Choice:
    """A setting with these levels, of which equal ones count once."""
    distinct = tuple(dict.fromkeys(levels))
    if own in distinct:
        return Choice(name, distinct, distinct.index(own), apply)
    return Choice(name, distinct, min(range(len(distinct)), key=lambda i: abs(distinct[i] - own)), apply)


def _relative(name: str, factors: tuple[float | None, ...], fields: dict[str, Any]) -> Choice:
    """A setting whose levels are multiples of the concurrency."""
    own = fields[name]
    ratios = [None if factor is None else abs(factor - (own or 0) / fields["concurrency"]) for factor in factors]
    known = [place for place, ratio in enumerate(ratios) if ratio is not None]
    default = len(factors) - 1 if own is None else min(known, key=lambda place: ratios[place] or 0.0)

    def apply(strategy: Any, factor: float | None) -> Strategy:
        value = None if factor is None else max(1, round(factor * strategy.concurrency))
        return _setter(name)(strategy, value)

    return Choice(name, factors, default, apply)


def _setter(field: str) -> Callable[[Strategy, Any], Strategy]:
    return lambda strategy, value: replace(strategy, **{field: value})


def _set_rate(strategy: Any, rate: float) -> Strategy:
    changed: Strategy = replace(strategy, work=replace(strategy.work, learning_rate=rate))
    return changed


def _set_work(strategy: Any, amount: str) -> Strategy:
    number, unit = amount.split()
    settings: dict[str, Any] = {"steps": int(number)} if unit.startswith("step") else {"epochs": int(number)}
    changed: Strategy = replace(strategy, work=replace(strategy.work, **settings))
    return changed


def _set_steps(strategy: Any, steps: int) -> Strategy:
    low = max(1, round(strategy.min_steps * steps / strategy.max_steps))
    changed: Strategy = replace(strategy, min_steps=low, max_steps=steps)
    return changed
