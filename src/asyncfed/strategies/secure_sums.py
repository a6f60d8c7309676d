"""A strategy whose merges go through a simulated secure sum."""

from __future__ import annotations

from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, kind_of, replace
from asyncfed.rules.fixed_point_sum import FixedPointSum
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import ServerRule, rule_of
from asyncfed.rules.secure_aggregation import SecureAggregation
from asyncfed.rules.wrapping import WrappingRule
from asyncfed.strategies.dispatch import Dispatching
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.single_updates import why_single_updates
from asyncfed.strategies.wrapping import Wrapper


def with_secure_sums(strategy: Strategy, settings: SecureAggregation) -> Strategy:
    """The strategy with its sums made in fixed point, before whatever else its rule does.

    Args:
        strategy: one that needs no single updates.
        settings: of the sum.

    Returns:
        The strategy, whose rule has a `FixedPointSum` in place of its innermost `Mean()`.

    Raises:
        ConfigError: the strategy or its rule needs to see single updates, or its work does not send sums; the text says
            why, and what else to do.

    >>> from asyncfed.strategies import FedBuff
    >>> with_secure_sums(FedBuff(buffer_size=5), SecureAggregation(bits=24)).rule.members
    5
    """
    why = why_single_updates(strategy)
    if why is not None:
        raise ConfigError(
            f"secure_aggregation shows the server nothing but sums, and {_kind(strategy)} needs single updates: {why}. "
            "Use a strategy that does with sums (asyncfed list strategies), such as fedbuff or fedavg, or leave "
            "secure_aggregation out."
        )
    return _with_sum(strategy, settings)


def _with_sum(strategy: Strategy, settings: SecureAggregation) -> Strategy:
    bare: Any = strategy
    if isinstance(strategy, Wrapper):
        around: Strategy = replace(bare, strategy=_with_sum(strategy.strategy, settings))
        return around
    if "rule" not in getattr(strategy, "__struct_fields__", ()):
        raise ConfigError(
            f"secure_aggregation puts a rule into the strategy, and {_kind(strategy)} takes none: sums are enough for "
            "it, but cannot be simulated. Use another strategy, such as fedbuff or fedavg."
        )
    members = strategy.dispatch.merged_at_once if isinstance(strategy, Dispatching) else UNSET
    if settings.change_bound is None and (rule_of(strategy) or Mean()).draws_noise:
        raise ConfigError(
            "secure_aggregation goes together with noise for privacy only if rounding lengthens no change and no sum "
            f'can wrap around, and it rounds "{settings.rounding}". Set secure_aggregation.rounding to '
            '"toward_zero", and leave fraction_bits out.'
        )
    rule = sum_inside(rule_of(strategy) or Mean(), FixedPointSum(settings=settings, members=members))
    rule.check(strategy.work)
    summed: Strategy = replace(bare, rule=rule)
    return summed


def sum_inside(rule: ServerRule, innermost: FixedPointSum) -> ServerRule:
    """The rule with the sum in place of the `Mean()` that it is built around; around it, if it is built around none."""
    bare: Any = rule
    if isinstance(rule, Mean):
        return innermost
    if isinstance(rule, WrappingRule):
        inside: ServerRule = replace(bare, rule=sum_inside(rule.rule, innermost))
        return inside
    return replace(innermost, rule=rule)


def _kind(strategy: Strategy) -> str:
    """What the user chose; what is around it may have been put there by privacy."""
    if isinstance(strategy, Wrapper) and strategy.single_updates is None:
        return _kind(strategy.strategy)
    return kind_of(type(strategy)) or type(strategy).__name__
