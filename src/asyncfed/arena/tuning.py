"""Tuning: the same number of trials for every strategy, over its learning rate and its local work.

A trial is a run on a tuning seed, which no measurement uses. The search walks on a grid: from the best setting so far
to its first neighbour that was not tried, rates before local work. Its best settings are tried again on more tuning
seeds, because the fastest on one seed may be the luckiest, and the best of them by the mean is taken. Every strategy
has the same number of trials, whether it needs them or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log
from typing import Protocol

from asyncfed.arena.measured_run import RunOutcome
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record, replace

RATE_FACTOR = 3.0
MOST_RATES = 4
"""How many levels there are above and below the problem's own rate."""

STEP_LEVELS = (1, 4, 16)
"""Local mini-batch steps of a ticket."""

FIRST = (0, 1)
"""Where every search starts: the problem's own rate, 4 local steps."""

MISSED = 100.0
WORTHLESS = 1000.0
"""Scores of trials that missed the target (plus the share of the way that was left), and of those that diverged."""

FINALISTS = 2
"""Settings that are tried on all tuning seeds."""

Levels = tuple[int, int]
"""A level of the rate, and one of the local steps."""


class Trial(Record):
    """One setting that was tried.

    Args:
        rate: the learning rate.
        steps: local steps.
        limit: virtual seconds after which it was given up: those of the best trial before it, if there was one.
        outcome: of its run on the first tuning seed.
        again: of a finalist, the outcomes on the other tuning seeds.
    """

    rate: float
    steps: int
    limit: float | None
    outcome: RunOutcome
    again: tuple[RunOutcome, ...] = ()

    @property
    def score(self) -> float:
        """Of the first tuning seed; less is better."""
        return score(self.outcome)

    @property
    def mean_score(self) -> float:
        """Over all tuning seeds that it was tried on."""
        return sum(map(score, (self.outcome, *self.again))) / (1 + len(self.again))


def score(outcome: RunOutcome) -> float:
    """The logarithm of the time to the target; behind all those that reached it, how far a run came."""
    if outcome.time is not None:
        return log(max(outcome.time, 1e-9))
    if outcome.verdict == "not reached":
        return MISSED + (1.0 if outcome.left is None else min(outcome.left, 100.0))
    return WORTHLESS


class TrialFunction(Protocol):
    """Runs a setting: its rate and local steps, the tuning seed by its number, and a limit of virtual seconds."""

    def __call__(self, rate: float, steps: int, seed: int, limit: float | None) -> RunOutcome: ...


def tune(base_rate: float, count: int, num_seeds: int, limit: float | None, run: TrialFunction) -> list[Trial]:
    """Try `count` settings on the first tuning seed, and the best of them on the others.

    Args:
        base_rate: the rate of level 0.
        count: how many settings, at least 1.
        num_seeds: how many tuning seeds there are, at least 1.
        limit: virtual seconds that a trial may take; None for no limit.
        run: the outcome of a setting.

    Returns:
        The trials in their order; finalists have outcomes on all seeds.
    """
    if count < 1:
        raise ConfigError(f"trials is {count}; a strategy needs at least 1.")
    tried: dict[Levels, Trial] = {}
    while len(tried) < count:
        at = _next_levels(tried)
        if at is None:
            break
        reached = [trial.outcome.time for trial in tried.values() if trial.outcome.time is not None]
        allowed = min([*reached, *([] if limit is None else [limit])], default=None)
        rate, steps = rate_at(base_rate, at[0]), STEP_LEVELS[at[1]]
        tried[at] = Trial(rate, steps, allowed, run(rate, steps, 0, allowed))
    finalists = sorted(tried.values(), key=lambda trial: trial.score)[:FINALISTS]
    return [
        replace(trial, again=tuple(run(trial.rate, trial.steps, seed, limit) for seed in range(1, num_seeds)))
        if trial in finalists
        else trial
        for trial in tried.values()
    ]


def best_trial(trials: Sequence[Trial]) -> Trial:
    """The finalist with the lowest mean score, the earliest of equal ones."""
    most = max(len(trial.again) for trial in trials)
    return min((trial for trial in trials if len(trial.again) == most), key=lambda trial: trial.mean_score)


def rate_at(base_rate: float, level: int) -> float:
    """The rate of a level, to three digits, so that it can be typed.

    >>> rate_at(0.05, -1)
    0.0167
    """
    return float(f"{base_rate * RATE_FACTOR**level:.3g}")


def _next_levels(tried: dict[Levels, Trial]) -> Levels | None:
    """The next setting to try; None if all were."""
    if not tried:
        return FIRST
    for at in sorted(tried, key=lambda levels: tried[levels].score):
        fell = tried[at].score >= WORTHLESS
        for levels in _neighbours(at, fell):
            if levels not in tried and abs(levels[0]) <= MOST_RATES and 0 <= levels[1] < len(STEP_LEVELS):
                return levels
    return None


def _neighbours(at: Levels, fell: bool) -> Iterator[Levels]:
    """What is tried next to a setting. Below one that diverged, at once two levels lower, and nothing above it."""
    rate, steps = at
    if fell:
        yield from ((rate - 2, steps), (rate - 1, steps), (rate, steps - 1))
        return
    yield from ((rate + 1, steps), (rate - 1, steps))
    yield from ((rate, steps - 1), (rate, steps + 1))
    yield from ((rate + 1, steps - 1), (rate - 1, steps + 1))
