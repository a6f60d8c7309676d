"""Putting noise and clipping into a strategy: where they belong, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, replace
from asyncfed.core.types import Uplink, Work
from asyncfed.privacy.protocol import Setting
from asyncfed.privacy.soundness import check_selection, check_sums, check_work, name_of
from asyncfed.rules.clipped import Clipped
from asyncfed.rules.mean import Mean
from asyncfed.rules.optimised import Optimised
from asyncfed.rules.protocol import ServerRule, rule_of
from asyncfed.strategies.dispatch import Dispatching
from asyncfed.strategies.participation_caps import ParticipationCaps
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.wrapping import Wrapper
from asyncfed.uplinks.clip import Clip
from asyncfed.uplinks.noise import adds_noise

TYPICAL_PARAMS = 1000
"""An uplink that does not know the size of its messages for so many parameters knows it for no number."""


def merged_at_once(strategy: Strategy) -> int:
    """K: how many updates make a release."""
    if not isinstance(strategy, Dispatching):
        raise ConfigError(f"{name_of(strategy)} does not say how many updates it merges at once. Use fedbuff.")
    return strategy.dispatch.merged_at_once


def check_buffered(strategy: Strategy) -> None:
    """Refuse what noise at the server cannot make private, whatever its size."""
    check_work(strategy.work)
    check_selection(strategy)
    _innermost(rule_of(strategy) or Mean())
    check_sums(strategy)
    for uplink in () if strategy.work.uplink is UNSET else strategy.work.uplink:
        if adds_noise(uplink):
            raise ConfigError(
                f"work.uplink has {name_of(uplink)}, whose messages a live run's file keeps for good, however little "
                'noise they have, and the server adds noise too. Leave it out, or use privacy.kind = "local".'
            )
        if uplink.size(TYPICAL_PARAMS, 8) is None:
            raise ConfigError(
                f"work.uplink has {name_of(uplink)}: whether and how much a client sends then depends on its data, and "
                "the scheduler reacts to it. Use codecs of a size that is known."
            )


def with_noise(strategy: Strategy, clip: float, noised: Callable[[ServerRule], ServerRule]) -> Strategy:
    """The strategy with changes clipped and noise around its sum, inside of whatever goes on with what is released.

    Without codecs the client clips, and the server refuses longer changes. With codecs, which may lengthen a change,
    the server clips what it has decoded, and messages stay short.

    Args:
        strategy: one that passed `check_buffered`.
        clip: C.
        noised: the rule that adds noise, around a rule.
    """
    bare: Any = strategy
    if isinstance(strategy, Wrapper):
        around: Strategy = replace(bare, strategy=with_noise(strategy.strategy, clip, noised))
        return around
    if not {"rule", "work"} <= set(getattr(strategy, "__struct_fields__", ())):
        raise ConfigError(f"privacy puts a rule into the strategy, and {name_of(strategy)} takes none. Use fedbuff.")
    uplinks: tuple[Uplink, ...] = () if strategy.work.uplink is UNSET else strategy.work.uplink
    sent = getattr(uplinks[-1], "change_bound", inf) if uplinks else inf
    work: Work = strategy.work if uplinks else replace(strategy.work, uplink=(Clip(norm=clip),))
    innermost = noised(Clipped(norm=clip) if uplinks and sent > clip else Mean())
    rule = _with_innermost(rule_of(strategy) or Mean(), innermost)
    composed: Strategy = replace(bare, work=work, rule=rule)
    return composed


def with_caps(
    strategy: Strategy, setting: Setting, participations: int, separation: int = 0, releases: int | None = None
) -> ParticipationCaps:
    """The strategy in which no client takes part more often than was accounted for."""
    return ParticipationCaps(
        strategy=strategy,
        num_clients=setting.num_clients,
        participations=participations,
        separation=separation,
        releases=releases,
    )


def _innermost(rule: ServerRule) -> Mean:
    """The sum that a rule is built around; refuses rules that look at updates, or at anything before the noise."""
    if isinstance(rule, Mean):
        return rule
    if isinstance(rule, Optimised):
        return _innermost(rule.rule)
    if rule.draws_noise:
        raise ConfigError(
            f"strategy.rule has {name_of(rule)} already, and privacy puts noise into the rule itself. Leave it out of "
            "strategy.rule."
        )
    raise ConfigError(
        f"strategy.rule has {name_of(rule)}, which looks at single updates, or decides by them, before noise is added. "
        "Around the noise may be a server optimiser (optimised); leave other rules out."
    )


def _with_innermost(rule: ServerRule, innermost: ServerRule) -> ServerRule:
    if isinstance(rule, Optimised):
        return replace(rule, rule=_with_innermost(rule.rule, innermost))
    return innermost
