"""What `--robust` puts in: a defence against lying clients for a strategy and a number of clients."""

from __future__ import annotations

from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import kind_of, replace
from asyncfed.rules import Compared, LatestModels, Mean, Robust
from asyncfed.rules.aggregators import Ctma, GeometricMedian
from asyncfed.rules.protocol import ServerRule, check_merge, rule_of
from asyncfed.strategies import Dispatching
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.wrapping import Wrapper

FEWEST_CLIENTS = 3
"""One liar among two cannot be told from the other."""


STANDS_OUT = 3.0
"""A client's latest model may be left out if it is so many times as far from the centre as the median one."""


def make_robust(strategy: Strategy, num_clients: int, liars: int | None = None) -> tuple[Strategy, str]:
    """The strategy with a defence against clients that send false updates, and what that is, in words.

    Every update is compared with the latest change of each client, and one that is far from them counts as if it were
    their median: see `asyncfed.rules.Compared`. It is put around the rule that the strategy has. Where the strategy
    averages every client's latest model, as AFL does, the mean is of those models that do not stand out
    (`asyncfed.rules.LatestModels`): a table of models tells liars from others sooner than one of changes.

    Args:
        strategy: any strategy that takes a rule.
        num_clients: how many clients there are, 3 or more.
        liars: how many of them may lie, fewer than half; None for a third, rounded down, and at least 1.

    Returns:
        The strategy, and a sentence for whoever starts the run.

    Raises:
        ConfigError: there is no defence for this strategy or so few clients; the text says why, and what else to do.

    >>> from asyncfed.strategies import FedAsync
    >>> make_robust(FedAsync(), num_clients=7)[1]
    'robust: each update is compared with the latest of all 7 clients; up to 2 liars among them are withstood'
    """
    if num_clients < FEWEST_CLIENTS:
        raise ConfigError(
            f"robust needs at least {FEWEST_CLIENTS} clients, and there are {num_clients}: of two that disagree nobody "
            "can say which one lies. Add clients, or leave robust out."
        )
    most = (num_clients - 1) // 2
    count = min(max(1, num_clients // 3), most) if liars is None else liars
    if not 1 <= count <= most:
        raise ConfigError(
            f"robust is to withstand {count} liars among {num_clients} clients; it can be 1 to {most}, for the honest "
            "ones have to be more. Set it lower, or leave it out."
        )
    defended = _with_rule(strategy, count, num_clients)
    many = "1 liar" if count == 1 else f"{count} liars"
    words = f"each update is compared with the latest of all {num_clients} clients"
    return defended, f"robust: {words}; up to {many} among them are withstood"


def _with_rule(strategy: Strategy, liars: int, num_clients: int) -> Strategy:
    if isinstance(strategy, Wrapper):
        wrapper: Any = strategy
        around: Strategy = replace(wrapper, strategy=_with_rule(strategy.strategy, liars, num_clients))
        return around
    kind, inner = kind_of(type(strategy)), rule_of(strategy)
    if "rule" not in getattr(strategy, "__struct_fields__", ()):
        raise ConfigError(
            f"robust needs a strategy that takes a rule, and {kind} takes none: it is a defence itself, or merges in a "
            "way of its own. Leave robust out, or use another strategy."
        )
    if _is_robust(inner):
        raise ConfigError(
            f"robust is asked for, but strategy.rule of {kind} is a defence already. Leave one of them out."
        )
    if inner is not None and inner.draws_noise:
        raise ConfigError(
            f"robust compares clients with each other, and strategy.rule of {kind} adds noise for their privacy, which "
            "holds for sums only. Leave one of them out."
        )
    rule: ServerRule = Compared(rule=Mean() if inner is None else inner, liars=liars)
    equal = getattr(strategy, "weighting", "equal") == "equal"  # the table of models counts every client the same
    if inner is None and equal and getattr(strategy, "aggregate", None) == "latest":
        rule = LatestModels(aggregator=Ctma(anchor=GeometricMedian(), liars=liars, factor=STANDS_OUT))
    at_once = strategy.dispatch.merged_at_once if isinstance(strategy, Dispatching) else 1
    check_merge(rule, at_once, num_clients)
    bare: Any = strategy
    defended: Strategy = replace(bare, rule=rule)
    return defended


def _is_robust(rule: ServerRule | None) -> bool:
    """Whether a rule, or one that it wraps, is a defence already."""
    while rule is not None:
        if isinstance(rule, Compared | LatestModels | Robust):
            return True
        inner = getattr(rule, "rule", None)
        rule = inner if isinstance(inner, ServerRule) else None
    return False
