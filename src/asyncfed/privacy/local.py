"""Local: every client adds the noise itself, and nobody sees its updates without."""

from __future__ import annotations

from functools import partial
from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, UnsetType, replace
from asyncfed.core.types import Uplink
from asyncfed.privacy.gaussian import epsilon_of, multiplier_for
from asyncfed.privacy.protocol import Claim, Setting
from asyncfed.privacy.settings import PrivacySettings, check_participations, default_participations
from asyncfed.privacy.soundness import check_measurements, check_selection, check_server_rows, check_work, name_of
from asyncfed.registry import register
from asyncfed.strategies.dispatch import Dispatching
from asyncfed.strategies.participation_caps import ParticipationCaps
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.wrapping import Wrapper
from asyncfed.uplinks.local_noise import LocalNoise


@register("privacy")
class Local(PrivacySettings, tag_field="kind", tag="local"):
    """Each client clips its change and adds noise before it sends it; nobody is asked for more than so many uploads.

        sent = clip(change) + z C N(0, I);    epsilon follows from mu = sqrt(uploads) / z, the client's own uploads

    Whoever receives the uploads, the server too, learns at most (epsilon, delta) about whether a client's updates were
    what they were, or all zero. It is the only mode for strategies that merge updates one by one (fedasync, afl), since
    each of their models shows a single client's update; it fits all others too. Noise and uploads are what the server's
    tickets ask for: a client without a guard of its own (`live.client_guard.LeastNoise`) trusts the server to ask for
    them as they are here. Every ticket counts, whether its upload arrives or not. The noise is large: useful models
    take very many clients, or a large epsilon.

    Args:
        epsilon: what a client may lose at most, above 0; or set `multiplier`, from which it follows.
        multiplier: z, the noise of an upload in clips, above 0. With both, epsilon is a limit that is checked.
        delta: below 1 / number of clients; left out, min(1e-5, 1 / (10 n)).
        clip: C, the longest change, above 0.
        uploads: how often each client sends at most, 1 or more; left out, 1.5 times an equal share of the budget's.
        unprotected_evaluation: whether models are measured on clients' data, which no noise protects; off by default.
        sampling_rate: refused: nothing is sampled, so no amplification can be claimed.

    >>> from asyncfed.core.types import Budget
    >>> from asyncfed.strategies import FedAsync
    >>> setting = Setting(num_clients=10, budget=Budget(updates=100))
    >>> claim = Local(epsilon=8.0).claim(FedAsync(), setting)
    >>> claim.participations, round(claim.multiplier, 2)
    (15, 2.32)

    Duchi, Jordan & Wainwright, "Local privacy and statistical minimax rates", FOCS 2013.
    """

    uploads: int | UnsetType = UNSET

    def claim(self, strategy: Strategy, setting: Setting) -> Claim:
        """What every client is promised."""
        delta, most = self.chosen_delta(setting.num_clients), self.uploads
        if most is UNSET:
            most = default_participations("uploads", _all_uploads(strategy, setting), setting.num_clients)
        check_participations("uploads", most, None)
        multiplier, epsilon = self.chosen_noise(
            partial(multiplier_for, participations=most, delta=delta),
            partial(epsilon_of, participations=most, delta=delta),
        )
        return Claim("local", epsilon, delta, self.clip, multiplier, most)

    def epsilon_after(self, claim: Claim, participations: int) -> float:
        """What a client has lost that was asked for so many uploads."""
        return epsilon_of(claim.multiplier, participations, claim.delta)

    def compose(self, strategy: Strategy, setting: Setting) -> Strategy:
        """The strategy whose clients add noise, with a cap on their tickets."""
        check_measurements(setting, self.unprotected_evaluation)
        check_work(strategy.work)
        check_selection(strategy)
        check_server_rows(strategy, setting)
        claim = self.claim(strategy, setting)
        capped = ParticipationCaps(
            strategy=_with_local_noise(strategy, LocalNoise(clip=claim.clip, multiplier=claim.multiplier)),
            num_clients=setting.num_clients,
            participations=claim.participations,
            counts="tickets",
        )
        capped.check(setting.num_clients)
        return capped


def _with_local_noise(strategy: Strategy, noise: LocalNoise) -> Strategy:
    """Noise comes first, so that codecs after it see nothing that it does not protect."""
    bare: Any = strategy
    if isinstance(strategy, Wrapper):
        around: Strategy = replace(bare, strategy=_with_local_noise(strategy.strategy, noise))
        return around
    if "work" not in getattr(strategy, "__struct_fields__", ()):
        raise ConfigError(f"privacy puts an uplink into the work, and {name_of(strategy)} has no such. Use fedasync.")
    uplinks: tuple[Uplink, ...] = () if strategy.work.uplink is UNSET else strategy.work.uplink
    if any(getattr(uplink, "draws_noise", False) for uplink in uplinks):
        raise ConfigError(
            "work.uplink adds noise already, and privacy puts it there itself. Leave it out of work.uplink."
        )
    composed: Strategy = replace(bare, work=replace(strategy.work, uplink=(noise, *uplinks)))
    return composed


def _all_uploads(strategy: Strategy, setting: Setting) -> int | None:
    """How many updates the budget allows in all; None if it does not say."""
    limits = [] if setting.budget.updates is None else [setting.budget.updates]
    if setting.budget.rounds is not None and isinstance(strategy, Dispatching):
        limits.append(setting.budget.rounds * strategy.round_size(setting.num_clients))
    return min(limits, default=None)
