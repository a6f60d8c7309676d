"""What each shipped strategy is in the words of the theory: its server rule, its step, how its clients are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from asyncfed.core.record import to_plain
from asyncfed.strategies import ShippedStrategy
from asyncfed.theory.setting import ServerRule

ARRIVALS = "merged on arrival, so fast clients come more often and the busy ones cannot be drawn"
COHORT = "each round's cohort is drawn uniformly when everybody is idle"
ALONE = "one client at a time, drawn uniformly when everybody is idle"


def server_rule(strategy: ShippedStrategy, same_sizes: bool = False) -> ServerRule:
    """The rule of a strategy; one that is not shipped is described by no bound.

    `same_sizes`: all clients have as many rows, so that weights by samples are equal ones.
    """
    plain = to_plain(strategy)
    describe = RULES.get(plain.get("kind", ""))
    if describe is None:
        return ServerRule("your own", "a strategy of your own", None, 1.0, 1, False, "unknown to the theory")
    weighting = plain.get("weighting", "equal")
    equal = weighting == "equal" or (weighting == "samples" and same_sizes)
    rule = describe(strategy, plain.get("sampler", {}).get("kind") == "uniform_idle")
    return replace(rule, constant_weight=rule.constant_weight and equal)


def declared_staleness(strategy: ShippedStrategy) -> int | None:
    """The largest staleness the strategy lets through, or None if it sets no bound."""
    plain = to_plain(strategy)
    kind = plain.get("kind")
    if kind in ("fedavg", "cyclic_weight_transfer") or plain.get("concurrency") == 1:
        return 0
    if kind == "afl" and plain["when_stale"] in ("drop", "wait"):
        bound: int | None = plain["max_staleness"]
        return bound
    return None


def round_size(strategy: ShippedStrategy, num_clients: int) -> int:
    """J: how many updates make a round."""
    plain = to_plain(strategy)
    if plain.get("kind") == "fedbuff":
        return int(plain["buffer_size"])
    return int(plain.get("concurrency") or plain.get("cohort_size") or plain.get("round_length") or num_clients)


def _afl(strategy: Any, uniform: bool) -> ServerRule:
    crowd = strategy.concurrency
    barrier = strategy.max_staleness == 0 and strategy.when_stale == "wait"
    alone = crowd == 1
    fresh = uniform and (barrier or alone)
    because = (COHORT if barrier else ALONE) if fresh else _not_fresh(uniform, ARRIVALS)
    together = crowd if barrier else 1
    damped = strategy.max_staleness is not None and strategy.when_stale == "damp"
    # Held updates are merged together: then a version takes now one delta, now several.
    bursts = strategy.when_stale == "wait" and not barrier and strategy.aggregate.startswith("delta")
    common: dict[str, Any] = {"fresh_cohorts": fresh, "because": because, "constant_weight": not (damped or bursts)}
    if strategy.aggregate == "latest":
        words = "the mean of every client's latest model"
        return ServerRule("latest-average", words, "latest", 1.0, together, **common)
    if strategy.aggregate == "mixing":
        words = f"x ← {1 - strategy.mixing:g} x + {strategy.mixing:g} model"
        return ServerRule("mixing", words, "models", strategy.mixing, together, **common)
    if strategy.aggregate == "delta_sum":
        words = "x ← x + Σ delta, a whole round at once" if barrier else "x ← x + delta, each as it arrives"
        return ServerRule(
            "sum of deltas", words, "deltas", float(together), together, adds_up=barrier or alone, **common
        )
    step = 1.0 if barrier else 1.0 / crowd
    words = "x ← x + mean of deltas, a whole round at once" if barrier else f"x ← x + delta/{crowd}, each as it arrives"
    return ServerRule("average of deltas", words, "deltas", step, together, **common)


def _fedavg(strategy: Any, uniform: bool) -> ServerRule:
    words = "x ← mean of the cohort's models, which is x + mean of deltas, for nobody is stale"
    because = COHORT if uniform else _not_fresh(uniform, "")
    return ServerRule("synchronous average", words, "models", 1.0, strategy.cohort_size, uniform, because)


def _fedasync(strategy: Any, uniform: bool) -> ServerRule:
    alone = strategy.concurrency == 1
    fresh = uniform and alone
    words = f"x ← (1 − a) x + a model, a = {strategy.mixing:g} times a discount for staleness"
    constant = alone or to_plain(strategy.discount)["kind"] == "constant"
    because = ALONE if fresh else _not_fresh(uniform, ARRIVALS)
    return ServerRule("mixing", words, "models", strategy.mixing, 1, fresh, because, constant_weight=constant)


def _fedbuff(strategy: Any, uniform: bool) -> ServerRule:
    words = (
        f"the mean of {strategy.buffer_size} buffered deltas, times {strategy.server_lr:g} and a discount for staleness"
    )
    constant = to_plain(strategy.discount)["kind"] == "constant"
    because = _not_fresh(uniform, ARRIVALS)
    size = strategy.buffer_size
    return ServerRule(
        "buffered deltas", words, "deltas", strategy.server_lr, size, False, because, constant_weight=constant
    )


def _cyclic(strategy: Any, uniform: bool) -> ServerRule:
    because = "without replacement inside a cycle, so the next client depends on the past"
    words = "each client starts from the one before it"
    return ServerRule("sequential", words, "models", 1.0, 1, False, because, sequential=True)


def _published(strategy: Any, uniform: bool) -> ServerRule:
    words = "clients never download the server's model"
    return ServerRule(
        "published scripts", words, None, 1.0, strategy.cohort_size, False, "clients train on from their own models"
    )


def _not_fresh(uniform: bool, otherwise: str) -> str:
    return otherwise if uniform else "the sampler is not uniform among idle clients"


RULES: dict[str, Callable[[Any, bool], ServerRule]] = {
    "afl": _afl,
    "fedavg": _fedavg,
    "fedasync": _fedasync,
    "fedbuff": _fedbuff,
    "cyclic_weight_transfer": _cyclic,
    "published_scripts": _published,
}
