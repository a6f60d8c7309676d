"""The settings that all modes of private runs share, and what follows where they are left out."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.core.types import Budget
from asyncfed.privacy.gaussian import check_delta, check_epsilon
from asyncfed.uplinks.norms import check_norm

SLACK = 1.5
"""Default caps are so many times what is needed if all take part equally: fast clients take part more often."""

LARGEST_DEFAULT_DELTA = 1e-5


class PrivacySettings(Config):
    """What all modes have; see `Central`, `Tree` and `Local`."""

    epsilon: float | UnsetType = UNSET
    multiplier: float | UnsetType = UNSET
    delta: float | UnsetType = UNSET
    clip: float = 1.0
    unprotected_evaluation: bool = False
    sampling_rate: float | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.sampling_rate is not UNSET:
            raise ConfigError(
                f"privacy.sampling_rate is {self.sampling_rate}, but nothing is sampled: whoever arrives takes part, "
                "and the scheduler, not chance, says who is asked. No amplification can be claimed. Leave it out."
            )
        if self.epsilon is UNSET and self.multiplier is UNSET:
            raise ConfigError("privacy has neither epsilon nor multiplier; set privacy.epsilon, such as 2.0.")
        if self.epsilon is not UNSET:
            check_epsilon(self.epsilon)
        if self.multiplier is not UNSET and not 0 < self.multiplier < inf:
            raise ConfigError(
                f"privacy.multiplier is {self.multiplier}; without noise nothing is hidden. Make it positive, or set "
                "privacy.epsilon instead."
            )
        if self.delta is not UNSET:
            check_delta(self.delta)
        check_norm("privacy.clip", self.clip)

    def chosen_delta(self, num_clients: int) -> float:
        """Delta as it was set, or min(1e-5, 1 / (10 n)). One of 1/n would allow to publish somebody's data."""
        if self.delta is UNSET:
            return min(LARGEST_DEFAULT_DELTA, 0.1 / num_clients)
        if num_clients > 1 and self.delta >= 1.0 / num_clients:
            raise ConfigError(
                f"privacy.delta is {self.delta}; it must be well below 1 / number of clients, {1.0 / num_clients:.3g}: "
                "else a run that publishes one client's data would count as private. Leave it out, or set 1e-5."
            )
        return self.delta

    def chosen_noise(
        self, multiplier_for: Callable[[float], float], epsilon_of: Callable[[float], float]
    ) -> tuple[float, float]:
        """Multiplier and epsilon; the one that was not set follows from the other. Both set: epsilon is a limit."""
        if self.multiplier is UNSET:
            assert self.epsilon is not UNSET
            return multiplier_for(self.epsilon), self.epsilon
        spent = epsilon_of(self.multiplier)
        if self.epsilon is not UNSET and spent > self.epsilon * (1.0 + 1e-9):
            raise ConfigError(
                f"privacy.multiplier is {self.multiplier:g}, which with these caps costs a client epsilon {spent:.4g}, "
                f"above privacy.epsilon, {self.epsilon:g}. It takes a multiplier of "
                f"{multiplier_for(self.epsilon):.4g}, or smaller caps."
            )
        if spent == inf:
            raise ConfigError(
                f"privacy.multiplier is {self.multiplier:g}, so little noise that nothing is hidden: epsilon has no "
                "bound. Make it larger, or set privacy.epsilon instead."
            )
        return self.multiplier, spent


def releases_of(budget: Budget, merged_at_once: int) -> int | None:
    """How many merges of so many updates the budget allows; None if it does not say."""
    limits = [] if budget.rounds is None else [budget.rounds]
    limits += [] if budget.updates is None else [ceil(budget.updates / merged_at_once)]
    return min(limits, default=None)


def default_participations(name: str, uploads: int | None, num_clients: int) -> int:
    """`SLACK` times an equal share of all uploads.

    Args:
        name: of the setting.
        uploads: how many there are in the whole run; None if that is not known.
        num_clients: how many clients share them.
    """
    if uploads is None:
        raise ConfigError(
            f"privacy.{name} is not set, and does not follow from the budget, which has neither rounds nor updates. "
            f"Set privacy.{name}, or budget.rounds."
        )
    return max(1, ceil(SLACK * uploads / num_clients))


def check_participations(name: str, value: int, most: int | None) -> None:
    """Refuse a cap that is none, and one that the run cannot reach: its noise would be for nothing."""
    if value < 1:
        raise ConfigError(f"privacy.{name} is {value}; a client must be allowed to take part at least once.")
    if most is not None and value > most:
        raise ConfigError(
            f"privacy.{name} is {value}, but the budget allows {most}: the noise would be for merges that never come. "
            f"Set it to {most} or less, or leave it out."
        )
