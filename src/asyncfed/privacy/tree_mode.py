"""Tree: a server that is trusted adds noise to prefix sums, for clients that take part often."""

from __future__ import annotations

from functools import partial
from math import ceil

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, UnsetType
from asyncfed.privacy.composition import check_buffered, merged_at_once, with_caps, with_noise
from asyncfed.privacy.protocol import Claim, Setting
from asyncfed.privacy.settings import PrivacySettings, check_participations, default_participations, releases_of
from asyncfed.privacy.soundness import check_measurements, check_merges
from asyncfed.privacy.tree import epsilon_of_tree, tree_multiplier_for
from asyncfed.registry import register
from asyncfed.rules.protocol import ServerRule
from asyncfed.rules.tree_noised import TreeNoised
from asyncfed.strategies.protocol import Strategy


@register("privacy")
class Tree(PrivacySettings, tag_field="kind", tag="tree"):
    """As `Central`, but noise goes to the sum of all merges so far, in a binary tree (DP-FTRL).

        x_t - x_0 = (1/K) (sum of clipped, weighed changes up to merge t + z C noise of the tree's nodes for t)

    The noise of the model then grows with the logarithm of the number of merges, not with its root. What a client loses
    follows from how often it takes part at most, k, how many merges are at least between, b, and how many there are, T:
    all three are kept by the scheduler. Needed are K (b + 1) clients at least.

    Args:
        epsilon: what a client may lose at most, above 0; or set `multiplier`, from which it follows.
        multiplier: z, the noise of a node in clips, above 0. With both, epsilon is a limit that is checked.
        delta: below 1 / number of clients; left out, min(1e-5, 1 / (10 n)).
        clip: C, the longest change, above 0.
        participations: k, 1 or more; left out, 1.5 times an equal share of the merges, as far as the separation allows.
        separation: b, 0 or more; left out, about half of what the number of clients allows.
        releases: T, 1 or more; left out, those of the budget.
        unprotected_evaluation: whether models are measured on clients' data, which no noise protects; off by default.
        sampling_rate: refused: nothing is sampled, so no amplification can be claimed.

    >>> from asyncfed.core.types import Budget
    >>> from asyncfed.strategies import FedBuff
    >>> claim = Tree(epsilon=2.0).claim(FedBuff(buffer_size=10), Setting(num_clients=100, budget=Budget(rounds=50)))
    >>> claim.participations, claim.separation, claim.releases, round(claim.multiplier, 1)
    (8, 4, 50, 21.2)

    Kairouz et al., "Practical and Private (Deep) Learning without Sampling or Shuffling", ICML 2021.
    """

    participations: int | UnsetType = UNSET
    separation: int | UnsetType = UNSET
    releases: int | UnsetType = UNSET

    def claim(self, strategy: Strategy, setting: Setting) -> Claim:
        """What every client is promised."""
        merged, delta, clients = merged_at_once(strategy), self.chosen_delta(setting.num_clients), setting.num_clients
        releases = self._releases(releases_of(setting.budget, merged))
        separation = max(0, clients // (2 * merged) - 1) if self.separation is UNSET else self.separation
        possible = ceil(releases / (separation + 1))
        most = self.participations
        if most is UNSET:
            most = min(possible, default_participations("participations", releases * merged, clients))
        check_participations("participations", most, possible)
        multiplier, epsilon = self.chosen_noise(
            partial(tree_multiplier_for, releases=releases, participations=most, separation=separation, delta=delta),
            partial(epsilon_of_tree, releases=releases, participations=most, separation=separation, delta=delta),
        )
        return Claim("tree", epsilon, delta, self.clip, multiplier, most, separation, releases, merged)

    def _releases(self, allowed: int | None) -> int:
        if self.releases is UNSET:
            if allowed is None:
                raise ConfigError("privacy.releases is not set, and the budget has neither rounds nor updates. Set it.")
            return allowed
        if self.releases < 1:
            raise ConfigError(f"privacy.releases is {self.releases}; a tree has at least 1 release.")
        if allowed is not None and self.releases < allowed:
            raise ConfigError(
                f"privacy.releases is {self.releases}, but the budget allows {allowed} merges: the tree would be full "
                f"before the run is over. Set it to {allowed}, or leave it out."
            )
        return self.releases

    def epsilon_after(self, claim: Claim, participations: int) -> float:
        """What a client has lost that was in so many merges, wherever in the tree."""
        assert claim.releases is not None
        return epsilon_of_tree(claim.multiplier, claim.releases, participations, claim.separation, claim.delta)

    def compose(self, strategy: Strategy, setting: Setting) -> Strategy:
        """The strategy with clipping, noise and caps."""
        check_measurements(setting, self.unprotected_evaluation)
        check_buffered(strategy)
        claim = self.claim(strategy, setting)
        releases = claim.releases
        assert releases is not None

        def noised(rule: ServerRule) -> ServerRule:
            return TreeNoised(
                clip=claim.clip, multiplier=claim.multiplier, divisor=claim.divisor, releases=releases, rule=rule
            )

        composed = with_noise(strategy, claim.clip, noised)
        capped = with_caps(composed, setting, claim.participations, claim.separation, releases)
        capped.check(setting.num_clients)
        check_merges(strategy, setting.num_clients, claim.divisor)
        return capped
