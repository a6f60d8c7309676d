"""Central: a server that is trusted adds noise once per merge."""

from __future__ import annotations

from functools import partial

from asyncfed.core.record import UNSET, UnsetType
from asyncfed.privacy.composition import check_buffered, merged_at_once, with_caps, with_noise
from asyncfed.privacy.gaussian import epsilon_of, multiplier_for
from asyncfed.privacy.protocol import Claim, Setting
from asyncfed.privacy.settings import PrivacySettings, check_participations, default_participations, releases_of
from asyncfed.privacy.soundness import check_measurements, check_merges
from asyncfed.registry import register
from asyncfed.rules.noised import Noised
from asyncfed.rules.protocol import ServerRule
from asyncfed.strategies.protocol import Strategy


@register("privacy")
class Central(PrivacySettings, tag_field="kind", tag="central"):
    """Each change is clipped; the server adds noise once per merge and divides by K; nobody is in more than P merges.

        x <- x + (1/K) (sum_i s_i clip(change_i) + z C N(0, I));    epsilon follows from mu = sqrt(P) / z

    Who sees the released models learns at most (epsilon, delta) about whether any one client's updates were what they
    were, or all zero. The server itself sees the updates and has to be trusted; see `Local` where it is not. For
    strategies that merge K updates at once with weights of at most 1/K, as fedbuff does.

    Args:
        epsilon: what a client may lose at most, above 0; or set `multiplier`, from which it follows.
        multiplier: z, the noise in clips, above 0. With both, epsilon is a limit that is checked.
        delta: below 1 / number of clients; left out, min(1e-5, 1 / (10 n)).
        clip: C, the longest change, above 0. Too short and little is learnt, too long and noise drowns it: try it out
            with data that are nobody's secret.
        participations: P, 1 or more; left out, 1.5 times an equal share of the budget's merges.
        separation: merges at least between two of the same client, 0 or more.
        unprotected_evaluation: whether models are measured on clients' data, which no noise protects; off by default.
        sampling_rate: refused: nothing is sampled, so no amplification can be claimed.

    >>> from asyncfed.core.types import Budget
    >>> from asyncfed.strategies import FedBuff
    >>> setting = Setting(num_clients=100, budget=Budget(rounds=50))
    >>> claim = Central(epsilon=2.0).claim(FedBuff(buffer_size=10), setting)
    >>> claim.participations, round(claim.multiplier, 2)
    (8, 5.64)

    Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation", AISTATS 2022.
    """

    participations: int | UnsetType = UNSET
    separation: int = 0

    def claim(self, strategy: Strategy, setting: Setting) -> Claim:
        """What every client is promised."""
        merged, delta = merged_at_once(strategy), self.chosen_delta(setting.num_clients)
        releases = releases_of(setting.budget, merged)
        most = self.participations
        if most is UNSET:
            uploads = None if releases is None else releases * merged
            most = default_participations("participations", uploads, setting.num_clients)
            most = most if releases is None else min(most, releases)
        check_participations("participations", most, releases)
        multiplier, epsilon = self.chosen_noise(
            partial(multiplier_for, participations=most, delta=delta),
            partial(epsilon_of, participations=most, delta=delta),
        )
        return Claim("central", epsilon, delta, self.clip, multiplier, most, self.separation, releases, merged)

    def epsilon_after(self, claim: Claim, participations: int) -> float:
        """What a client has lost that was in so many merges."""
        return epsilon_of(claim.multiplier, participations, claim.delta)

    def compose(self, strategy: Strategy, setting: Setting) -> Strategy:
        """The strategy with clipping, noise and caps."""
        check_measurements(setting, self.unprotected_evaluation)
        check_buffered(strategy)
        claim = self.claim(strategy, setting)

        def noised(rule: ServerRule) -> ServerRule:
            return Noised(clip=claim.clip, multiplier=claim.multiplier, divisor=claim.divisor, rule=rule)

        capped = with_caps(with_noise(strategy, claim.clip, noised), setting, claim.participations, claim.separation)
        capped.check(setting.num_clients)
        check_merges(strategy, setting.num_clients, claim.divisor)
        return capped
