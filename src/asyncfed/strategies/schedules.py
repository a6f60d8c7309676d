"""Learning-rate schedules. The server applies them at the moment of dispatch, when round and delay spread are known."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import ClassVar, Literal

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, replace
from asyncfed.core.types import Schedule, Work
from asyncfed.registry import declare_part, register

declare_part("schedule", Schedule)


@register("schedule")
class ConstantRate(Config, tag_field="kind", tag="constant"):
    """The work's own rate, whatever the round and the delays.

    >>> ConstantRate().plan(Work(learning_rate=0.1), round=9, delay_spread=3.0).learning_rate
    0.1
    """

    known_ahead: ClassVar[bool] = True
    """Changes rate and decay only, whenever it is asked: a simulator may plan ahead."""

    def plan(self, work: Work, round: int, delay_spread: float | None) -> Work:
        """The work as it is."""
        return work


@register("schedule")
class DelayAware(Config, tag_field="kind", tag="delay_aware"):
    """The paper's rate: `base_lr / (sqrt(t + 1) * (1 + delay_penalty * delay_spread))`.

    `base_lr` is the work's `learning_rate`. `delay_spread` is the longest minus the shortest duration, in seconds,
    among the reports that arrived in the last complete round, whether they were merged, dropped or are held back.

    Args:
        delay_penalty: the paper's alpha, per second; 0 or more.
        over: what t counts: the local `epoch` (the published scripts: it starts anew with every ticket), the `round`
            (the reading of the analysis), or `nothing` (no decay).
        initial_spread: the delay spread assumed before the first round is complete, in seconds; 0 or more.

    >>> rate = DelayAware(delay_penalty=0.5, over="round")
    >>> rate.plan(Work(learning_rate=1.0), round=3, delay_spread=2.0).learning_rate
    0.25

    Forootani & Iervolino, "Asynchronous Federated Learning", section on the dynamic learning rate.
    """

    known_ahead: ClassVar[bool] = True
    """Changes rate and decay only, whenever it is asked: a simulator may plan ahead."""

    delay_penalty: float = 0.01
    over: Literal["epoch", "round", "nothing"] = "epoch"
    initial_spread: float = 0.0

    def __post_init__(self) -> None:
        for name in ("delay_penalty", "initial_spread"):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise ConfigError(f"schedule.{name} is {value}; it must be zero or positive.")

    def plan(self, work: Work, round: int, delay_spread: float | None) -> Work:
        """The work at the rate of this round; decaying over epochs, if that is what t counts."""
        spread = self.initial_spread if delay_spread is None else delay_spread
        rate = work.learning_rate / (1.0 + self.delay_penalty * spread)
        if self.over == "round":
            rate /= sqrt(round + 1)
        return replace(work, learning_rate=rate, decay=0.5 if self.over == "epoch" else work.decay)
