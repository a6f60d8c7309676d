"""Learning-rate schedules. The server applies them at the moment of dispatch, when round and delay spread are known."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import Literal, TypeAlias

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, replace
from asyncfed.core.types import Work


class ConstantRate(Config, tag_field="kind", tag="constant"):
    """The work's own rate, whatever the round and the delays."""

    def plan(self, work: Work, round: int, delay_spread: float | None) -> Work:
        return work


class DelayAware(Config, tag_field="kind", tag="delay_aware"):
    """The paper's rate: `base_lr / (sqrt(t + 1) * (1 + delay_penalty * delay_spread))`.

    `over` names t: the local `epoch` (the published scripts: reset at every dispatch), the `round` (the reading of
    the analysis), or `nothing` (no decay). `delay_spread` is the longest minus the shortest duration, in seconds,
    among the updates of the last complete round; `initial_spread` stands in before there is one.

    >>> rate = DelayAware(delay_penalty=0.5, over="round")
    >>> rate.plan(Work(learning_rate=1.0), round=3, delay_spread=2.0).learning_rate
    0.25
    """

    delay_penalty: float = 0.01
    over: Literal["epoch", "round", "nothing"] = "epoch"
    initial_spread: float = 0.0

    def __post_init__(self) -> None:
        for name in ("delay_penalty", "initial_spread"):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise ConfigError(f"schedule.{name} is {value}; it must be zero or positive.")

    def plan(self, work: Work, round: int, delay_spread: float | None) -> Work:
        spread = self.initial_spread if delay_spread is None else delay_spread
        rate = work.learning_rate / (1.0 + self.delay_penalty * spread)
        if self.over == "round":
            rate /= sqrt(round + 1)
        return replace(work, learning_rate=rate, decay=0.5 if self.over == "epoch" else work.decay)


RateSchedule: TypeAlias = ConstantRate | DelayAware
