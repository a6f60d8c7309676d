"""Whether a strategy needs to see single updates, or weighted sums are enough, as secure aggregation gives them.

It is derived, once for all strategies, from how many updates make a version, from the rule that merges them, and from
what clients are asked to report. A strategy that decides by something else of single updates says so itself, in
`single_updates`.
"""

from __future__ import annotations

from typing import Any

from asyncfed.rules.protocol import ServerRule, is_sum_only, rule_of

MEASURED = ("loss", "start_loss", "start_rms")
"""The settings of a work by which clients report numbers that their data and models gave."""


class SumOnly:
    """A strategy of which it is known whether weighted sums are enough: `sum_only`, and `why_single_updates` says why.

    >>> from asyncfed.strategies import FedAsync, FedAvg
    >>> FedAvg().sum_only, FedAsync().sum_only
    (True, False)
    """

    __slots__ = ()

    @property
    def single_updates(self) -> str | None:
        """Why single updates are needed, where it cannot be derived; None if it can."""
        return None

    @property
    def merges_several(self) -> bool | None:
        """Whether at least two updates make a version; None if how the strategy dispatches says so."""
        return None

    @property
    def sum_only(self) -> bool:
        """Whether the server needs nothing of single updates but their weighted sum over merges of at least two."""
        return why_single_updates(self) is None


def why_single_updates(strategy: object) -> str | None:
    """Why the server has to see single updates under this strategy, if it has to.

    Weights may follow from staleness, samples and counts, which are known before an update is seen.

    Args:
        strategy: any; one that does not inherit from `SumOnly`, as all dispatch policies do, does not say.

    Returns:
        The reason, as the end of a sentence; None if weighted sums are enough.

    >>> from asyncfed.strategies import FedAsync, FedBuff
    >>> why_single_updates(FedAsync())
    'it merges single updates as they arrive, and a sum of one is that one'
    >>> why_single_updates(FedBuff(buffer_size=5)) is None
    True
    """
    if not isinstance(strategy, SumOnly):
        return "it does not say whether sums are enough: inherit from a dispatch policy, or from SumOnly"
    if strategy.single_updates is not None:
        return strategy.single_updates
    rule = rule_of(strategy)
    if not is_sum_only(rule):
        return f"its rule, {_needing(rule)}, needs to see them"
    wrapped = getattr(strategy, "strategy", None)
    return _why_merges(strategy) or _why_work(strategy) if wrapped is None else why_single_updates(wrapped)


def _needing(rule: object) -> str:
    """The rule that needs single updates, or the innermost one that it wraps and that does."""
    inner = getattr(rule, "rule", None)
    return _needing(inner) if isinstance(inner, ServerRule) and not is_sum_only(inner) else type(rule).__name__


def _why_merges(strategy: SumOnly) -> str | None:
    several = strategy.merges_several
    if several is None:
        policy = getattr(strategy, "dispatch", None)
        if policy is None:
            return "it does not say how many updates it merges at once"
        several = policy.merged_at_once > 1
    return None if several else "it merges single updates as they arrive, and a sum of one is that one"


def _why_work(strategy: Any) -> str | None:
    """Samplers and rules that decide by measured numbers need work that measures them, so looking at it is enough."""
    asked = [name for name in MEASURED if getattr(strategy.work, name) is True]
    return f"work.{asked[0]} makes clients report a number about their own data" if asked else None
