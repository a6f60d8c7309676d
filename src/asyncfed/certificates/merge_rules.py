"""What theorems need to know of a strategy: its merge rule, its step, how its clients are drawn.

`RULES` holds all that is known of the shipped strategies; no theorem covers any other, a user's own included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from asyncfed.core.record import kind_of, to_plain
from asyncfed.strategies import (
    AFL,
    AFLGuard,
    CyclicWeightTransfer,
    FedAsync,
    FedAvg,
    FedBuff,
    FedCompass,
    PublishedScripts,
    Ringmaster,
)
from asyncfed.strategies.dispatch import Dispatching
from asyncfed.strategies.malenia import Malenia
from asyncfed.strategies.mindflayer import MindFlayer
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.rennala import Rennala
from asyncfed.strategies.ringleader import Ringleader
from asyncfed.theory.setting import ServerRule

ARRIVALS = "merged on arrival, so fast clients come more often and the busy ones cannot be drawn"
COHORT = "each round's cohort is drawn uniformly when all clients are idle"
FIRST_TO_FINISH = "whoever finishes first is merged, so fast clients come more often"
ONE_AT_A_TIME = "one client at a time, drawn uniformly when all clients are idle"


def server_rule(strategy: Strategy, same_sizes: bool = False) -> ServerRule:
    """The merge rule of a strategy; its `form` is None where no theorem covers it.

    `same_sizes`: all clients have as many rows, so that weights by samples are equal ones.
    """
    describe = RULES.get(type(strategy))
    if describe is None:
        return ServerRule(strategy_name(strategy), "no theorem covers it", None, 1.0, 1, False, "no theorem knows how")
    plain = to_plain(strategy)
    weighting = plain.get("weighting", "equal")
    equal = weighting == "equal" or (weighting == "samples" and same_sizes)
    rule = describe(strategy, plain.get("sampler", {}).get("kind") == "uniform_idle")
    return replace(rule, constant_weight=rule.constant_weight and equal)


def strategy_name(strategy: Strategy) -> str:
    """The kind a strategy is registered under, or the name of its class."""
    return kind_of(type(strategy)) or type(strategy).__name__


def declared_staleness(strategy: Strategy, num_clients: int) -> int | None:
    """The largest staleness the strategy enforces among so many clients; None if it sets no bound, or is not known."""
    if type(strategy) not in RULES:
        return None
    one_point = isinstance(strategy, FedAvg | CyclicWeightTransfer | Rennala | Malenia | MindFlayer)
    if one_point or tickets_in_flight(strategy) == 1:
        return 0
    if isinstance(strategy, Ringleader):
        return 2 * num_clients - 2
    if isinstance(strategy, Ringmaster):
        return strategy.staleness_threshold - 1
    if isinstance(strategy, AFL) and strategy.when_stale in ("drop", "wait"):
        return strategy.max_staleness
    return None


def tickets_in_flight(strategy: Strategy) -> int | None:
    """How many tickets a strategy has out at once; None if it does not say so."""
    return strategy.dispatch.tickets if isinstance(strategy, Dispatching) else None


def round_size(strategy: Strategy, num_clients: int) -> int:
    """J: how many updates make a round; for a strategy that does not say so, as many as there are clients."""
    if isinstance(strategy, Rennala):
        return strategy.changes_per_step
    return strategy.round_size(num_clients) if isinstance(strategy, Dispatching) else num_clients


def _afl(strategy: Any, uniform: bool) -> ServerRule:
    in_flight = strategy.concurrency
    barrier = strategy.max_staleness == 0 and strategy.when_stale == "wait"
    single = in_flight == 1
    fresh = uniform and (barrier or single)
    because = (COHORT if barrier else ONE_AT_A_TIME) if fresh else _not_fresh(uniform, ARRIVALS)
    together = in_flight if barrier else 1
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
            "sum of deltas", words, "deltas", float(together), together, adds_up=barrier or single, **common
        )
    step = 1.0 if barrier else 1.0 / in_flight
    words = (
        "x ← x + mean of deltas, a whole round at once" if barrier else f"x ← x + delta/{in_flight}, each as it arrives"
    )
    return ServerRule("average of deltas", words, "deltas", step, together, **common)


def _fedavg(strategy: Any, uniform: bool) -> ServerRule:
    words = "x ← mean of the cohort's models, which is x + mean of deltas, because no model is stale"
    because = COHORT if uniform else _not_fresh(uniform, "")
    return ServerRule("synchronous average", words, "models", 1.0, strategy.cohort_size, uniform, because)


def _fedasync(strategy: Any, uniform: bool) -> ServerRule:
    single = strategy.concurrency == 1
    fresh = uniform and single
    words = f"x ← (1 − a) x + a model, a = {strategy.mixing:g} times a discount for staleness"
    constant = single or to_plain(strategy.discount)["kind"] == "constant"
    because = ONE_AT_A_TIME if fresh else _not_fresh(uniform, ARRIVALS)
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


def _fedcompass(strategy: Any, uniform: bool) -> ServerRule:
    words = "deltas of groups that arrive together, each after as many local steps as fit"
    because = "every client is at work, for as many steps as its speed allows"
    return ServerRule("arrival groups", words, None, strategy.server_lr, 1, False, because, constant_weight=False)


def _aflguard(strategy: Any, uniform: bool) -> ServerRule:
    words = f"x ← x + {strategy.server_lr:g} delta, each as it arrives, if it is close enough to a trusted one"
    because = "which updates are merged depends on what they hold"
    return ServerRule("trusted deltas", words, None, strategy.server_lr, 1, False, because)


def _ringmaster(strategy: Any, uniform: bool) -> ServerRule:
    fresh = uniform and strategy.concurrency == 1
    limit = strategy.staleness_threshold
    words = f"x ← x + {strategy.server_lr:g} delta, each as it arrives, if it is below {limit} versions old"
    because = ONE_AT_A_TIME if fresh else _not_fresh(uniform, ARRIVALS)
    return ServerRule("deltas up to an age", words, "deltas", strategy.server_lr, 1, fresh, because)


def _rennala(strategy: Any, uniform: bool) -> ServerRule:
    words = f"x ← x + {strategy.server_lr:g} times the mean of the first {strategy.changes_per_step} deltas from x"
    size = strategy.changes_per_step
    return ServerRule("first deltas", words, "deltas", strategy.server_lr, size, False, FIRST_TO_FINISH)


def _malenia(strategy: Any, uniform: bool) -> ServerRule:
    words = f"x ← x + {strategy.server_lr:g} times the mean over clients of their mean deltas from x"
    because = "every client is in every version, as often as its speed allows"
    return ServerRule("mean of clients", words, None, strategy.server_lr, 1, False, because, constant_weight=False)


def _ringleader(strategy: Any, uniform: bool) -> ServerRule:
    step = 1.0 if strategy.server_lr is None else strategy.server_lr
    times = "1/C" if strategy.server_lr is None else f"{step:g}"
    words = f"x ← x + {times} times the mean over clients of their latest mean deltas"
    because = "every client is in every version, with deltas of one that is up to 2C − 2 older"
    return ServerRule("table of deltas", words, None, step, 1, False, because)


def _mindflayer(strategy: Any, uniform: bool) -> ServerRule:
    words = f"x ← x + {strategy.server_lr:g} times the sum of deltas that finish in time, over how many should"
    return ServerRule("deltas in time", words, None, strategy.server_lr, 1, False, FIRST_TO_FINISH)


def _cyclic(strategy: Any, uniform: bool) -> ServerRule:
    because = "without replacement inside a cycle, so the next client depends on the past"
    words = "each client starts from the one before it"
    return ServerRule("sequential", words, "models", 1.0, 1, False, because, sequential=True)


def _published_scripts(strategy: Any, uniform: bool) -> ServerRule:
    words = "clients never download the server's model"
    return ServerRule(
        "published scripts", words, None, 1.0, strategy.cohort_size, False, "clients train on from their own models"
    )


def _not_fresh(uniform: bool, otherwise: str) -> str:
    return otherwise if uniform else "the sampler is not uniform among idle clients"


RULES: dict[type[Any], Callable[[Any, bool], ServerRule]] = {
    AFL: _afl,
    AFLGuard: _aflguard,
    FedAvg: _fedavg,
    FedAsync: _fedasync,
    FedBuff: _fedbuff,
    FedCompass: _fedcompass,
    CyclicWeightTransfer: _cyclic,
    Malenia: _malenia,
    MindFlayer: _mindflayer,
    PublishedScripts: _published_scripts,
    Rennala: _rennala,
    Ringleader: _ringleader,
    Ringmaster: _ringmaster,
}
"""By class, not by kind: what inherits from a shipped strategy may merge differently, so no theorem covers it."""
