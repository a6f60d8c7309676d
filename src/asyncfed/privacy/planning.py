"""Noise for a wanted epsilon, or the epsilon of some noise, and how it grows with participation."""

from __future__ import annotations

from math import ceil
from typing import Literal, TypeAlias

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record
from asyncfed.privacy.gaussian import epsilon_of, multiplier_for
from asyncfed.privacy.tree import epsilon_of_tree, tree_multiplier_for

Mode: TypeAlias = Literal["central", "tree", "local"]


class NoisePlan(Record):
    """How much noise a mode adds, and what it costs a client.

    Args:
        mode: "central", "tree" or "local".
        epsilon: what a client loses that takes part as often as it may.
        delta: with which it does.
        multiplier: z, the noise in clips.
        participations: how often a client takes part at most.
        separation: b, of a tree.
        releases: T, of a tree; None for other modes.
    """

    mode: Mode
    epsilon: float
    delta: float
    multiplier: float
    participations: int
    separation: int = 0
    releases: int | None = None

    def epsilon_after(self, participations: int) -> float:
        """What a client has lost after so many."""
        if self.releases is None:
            return epsilon_of(self.multiplier, participations, self.delta)
        return epsilon_of_tree(self.multiplier, self.releases, participations, self.separation, self.delta)

    @property
    def growth(self) -> list[tuple[int, float]]:
        """Participations, from 1 on in about equal ratios and past the cap, and what each costs."""
        past = 4 * self.participations
        if self.releases is not None:
            past = min(past, ceil(self.releases / (self.separation + 1)))
        counts = {round(10 ** (step / 6)) for step in range(40)} | {self.participations}
        return [(count, self.epsilon_after(count)) for count in sorted(counts) if count <= max(past, 1)]


def plan_noise(
    mode: Mode,
    participations: int,
    delta: float,
    epsilon: float | None = None,
    multiplier: float | None = None,
    releases: int | None = None,
    separation: int = 0,
) -> NoisePlan:
    """The noise for an epsilon, or the epsilon of some noise.

    Args:
        mode: "central" and "local" compose single releases or uploads, "tree" noises prefix sums.
        participations: how often a client takes part at most, 1 or more.
        delta: above 0 and below 1.
        epsilon: what a client may lose; or give `multiplier`.
        multiplier: z, the noise in clips.
        releases: T, needed by "tree" alone.
        separation: b, of "tree" alone.

    >>> plan_noise("central", participations=10, delta=1e-5, epsilon=2.0).multiplier
    6.304988555424236
    """
    if (epsilon is None) == (multiplier is None):
        raise ConfigError("give either epsilon (--epsilon) or the noise (--noise); the other one follows.")
    if participations < 1:
        raise ConfigError(f"participations is {participations}; it must be at least 1.")
    if mode == "tree":
        if releases is None:
            raise ConfigError("a tree needs to know how many releases there are: give them (--releases).")
        if multiplier is None:
            assert epsilon is not None
            multiplier = tree_multiplier_for(epsilon, releases, participations, separation, delta)
        else:
            epsilon = epsilon_of_tree(multiplier, releases, participations, separation, delta)
    else:
        if releases is not None or separation:
            raise ConfigError(
                f'releases (--releases) and separation (--separation) are about trees; in the mode "{mode}" they '
                "change nothing. Leave them out."
            )
        if multiplier is None:
            assert epsilon is not None
            multiplier = multiplier_for(epsilon, participations, delta)
        else:
            epsilon = epsilon_of(multiplier, participations, delta)
    assert epsilon is not None
    return NoisePlan(mode, epsilon, delta, multiplier, participations, separation, releases)
