"""Robust: an aggregator that withstands liars, in place of the weighted mean of a merge.

State: the aggregator's, and two numbers per client for its suspicion. Bytes beyond the model: none.

When to use it: some clients may send false updates, and merges hold several at once, as FedBuff's and FedAvg's do.
Where updates are merged one by one, an aggregator has nothing to compare: use a rule that judges single arrivals.

What goes wrong elsewhere: a median over two updates, which is their mean; more liars in a buffer than the rule
withstands, because fast liars report more often than their share of clients says.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Merge
from asyncfed.registry import register
from asyncfed.rules.aggregators.median import Median
from asyncfed.rules.aggregators.protocol import Aggregate, Aggregator, CoordinateWise
from asyncfed.rules.compared_changes import CHUNK, aggregate_by_chunks, join_by_client, stack_changes
from asyncfed.rules.protocol import Arrays, Arrival, Probe, Rule
from asyncfed.rules.wrapping import with_prefix, without_prefix

OWN = "aggregator/"


@register("rule")
class Robust(Rule, Config, tag_field="kind", tag="robust"):
    """A robust aggregate takes the place of the weighted mean of a merge; the merge's total weight stays as it is.

        changes:  x <- keep x + W Aggr(D_i; w_i/W),              W = sum_i w_i
        models:   x <- (keep + W) x + W Aggr(M_i - x; w_i/W)

    With `Average` this is the merge as it always was, up to rounding. It wraps no rule, as `Mean` does not, and goes
    where `Mean` stands: `Optimised(rule=Robust(...))` steps along the robust aggregate, `Clipped(rule=Robust(...))` and
    `NormBounded(rule=Robust(...))` shorten updates before they are compared.

    - Arrivals with a number that is not finite are left out first. If fewer are left than the aggregator needs, the
      model stays as it is, and the journal says so: `too_few`, how many there were. A strategy whose merges are always
      too small is refused before the run.
    - Updates that the aggregator filters are in the journal: `filtered`, how many, and `filtered/<ticket>`, the score
      of each.
    - Each arrival is measured first: `suspicion` is the share of its client's earlier updates that were filtered, from
      0 to 1, where each counts `ageing` times as much as the one after it; 0 for a client nobody has judged yet.
      Aggregators that judge nobody, such as the median, leave it at 0.

    What the aggregator withstands it counts in *updates of a merge*, and a client that answers ten times as fast has
    ten times the updates. With `once_per_client`, several updates of one client in a merge become one first, their
    weighted mean, which counts what one of them does on average: liars are then counted in clients. A merge needs as
    many clients as the aggregator needs updates; W stays as it is.

    Args:
        aggregator: what takes the place of the mean.
        ageing: how much an earlier judgement of a client counts at its next, above 0 and at most 1.
        once_per_client: whether each client speaks once in a merge.

    >>> from asyncfed.strategies import FedBuff
    >>> FedBuff(buffer_size=10, rule=Robust(aggregator=Median(liars=3))).rule.aggregator.tolerates(10)
    4
    """

    aggregator: Aggregator = Median()
    ageing: float = 0.9
    once_per_client: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.ageing <= 1:
            raise ConfigError(f"rule.ageing is {self.ageing}; it must be above 0 and at most 1.")

    def check_merge(self, merged_at_once: int, num_clients: int) -> None:
        """Refuse merges of fewer updates than the aggregator needs."""
        at_once = min(merged_at_once, num_clients) if self.once_per_client else merged_at_once
        try:
            self.aggregator.check(at_once)
        except ConfigError as refusal:
            raise ConfigError(
                f"strategy.rule cannot work: {refusal} The strategy merges {merged_at_once} at once of "
                f"{num_clients} clients. Use one that "
                f"collects at least {self._fewest()} updates before it merges, such as FedBuff with buffer_size = "
                f"{self._fewest()} or more; or a rule that judges arrivals one by one."
            ) from None

    def _fewest(self) -> int:
        """The fewest updates that the aggregator works with."""
        return next(number for number in count(1) if self._is_enough(number))

    def _is_enough(self, number: int) -> bool:
        try:
            self.aggregator.check(number)
        except ConfigError:
            return False
        return True

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """The aggregator's memory; nobody has been judged."""
        judged = {"seen": np.zeros(num_clients), "filtered": np.zeros(num_clients)}
        return {**judged, **with_prefix(self.aggregator.init(params), OWN)}

    def measure(self, memory: Arrays, params: np.ndarray, arrival: Arrival, probe: Probe) -> dict[str, float]:
        """The suspicion."""
        seen = memory["seen"]
        known = arrival.client < seen.size and seen[arrival.client] > 0
        return {"suspicion": float(memory["filtered"][arrival.client] / seen[arrival.client]) if known else 0.0}

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The robust aggregate of the merge."""
        from asyncfed.kernels.merging import mix  # loads numba

        if merge.combiner is not None:
            raise ConfigError(
                f'strategy.rule cannot be used: the strategy merges by "{merge.combiner.name}", a rule of its own. '
                'Leave `rule` out, or choose another way to aggregate (AFL: aggregate = "delta_mean").'
            )
        if min(arrival.weight for arrival in arrivals) < 0:
            raise ConfigError(f"strategy.rule needs weights of 0 or more, but a merge has {merge.weights}.")
        found, own, left = self._aggregate(without_prefix(memory, OWN), params, arrivals, merge)
        if found is None:
            return params, memory, {"too_few": len(left)}
        total = _total(left)
        keep = merge.keep if merge.of == "delta" else merge.keep + total
        merged = np.empty_like(params)
        mix(params, keep, found.vector, total, merged)
        seen, filtered = self._judge(memory, found, left)
        return merged, {"seen": seen, "filtered": filtered, **with_prefix(own, OWN)}, _findings(found, left)

    def _aggregate(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge
    ) -> tuple[Aggregate | None, Arrays, Sequence[Arrival]]:
        """The aggregate, None if too few are left; the aggregator's memory; and the arrivals that are left."""
        distinct = len({arrival.client for arrival in arrivals}) == len(arrivals) or not self.once_per_client
        in_chunks = params.size > CHUNK and distinct and self._is_enough(len(arrivals))
        if in_chunks and isinstance(self.aggregator, CoordinateWise):
            vector = aggregate_by_chunks(self.aggregator, params, arrivals, merge, _shares(arrivals))
            if vector is not None:
                return Aggregate(vector), memory, arrivals
        vectors, left = stack_changes(params, arrivals, merge)
        shares, tickets = _shares(left), np.array([arrival.ticket for arrival in left])
        rows = np.arange(len(left))
        if not distinct:
            vectors, shares, rows = join_by_client(vectors, shares, [arrival.client for arrival in left])
            tickets = tickets[np.unique(rows, return_index=True)[1]]
        if not self._is_enough(len(vectors)) or _total(left) == 0:
            return None, memory, left
        found, memory = self.aggregator.aggregate(vectors, shares, memory, tickets)
        kept, scores = (None if of_rows is None else of_rows[rows] for of_rows in (found.kept, found.scores))
        return Aggregate(found.vector, kept, scores), memory, left

    def _judge(self, memory: Arrays, found: Aggregate, arrivals: Sequence[Arrival]) -> tuple[np.ndarray, np.ndarray]:
        seen, filtered = memory["seen"], memory["filtered"]
        if found.kept is None:
            return seen, filtered
        missing = max(arrival.client for arrival in arrivals) + 1 - seen.size
        if missing > 0:
            seen, filtered = np.pad(seen, (0, missing)), np.pad(filtered, (0, missing))
        for arrival, kept in zip(arrivals, found.kept.tolist(), strict=True):
            seen[arrival.client] = self.ageing * seen[arrival.client] + 1.0
            filtered[arrival.client] = self.ageing * filtered[arrival.client] + (0.0 if kept else 1.0)
        return seen, filtered


def _total(arrivals: Sequence[Arrival]) -> float:
    return sum(arrival.weight for arrival in arrivals)


def _shares(arrivals: Sequence[Arrival]) -> np.ndarray:
    """What each counts of the whole; all the same if they count nothing."""
    weights = np.array([arrival.weight for arrival in arrivals])
    return weights / _total(arrivals) if weights.any() else np.full(len(arrivals), 1.0 / max(1, len(arrivals)))


def _findings(found: Aggregate, arrivals: Sequence[Arrival]) -> dict[str, float]:
    """Who was filtered, for the journal."""
    if found.kept is None or found.kept.all():
        return {}
    largest = float(np.finfo(np.float64).max)
    scores = np.zeros(len(arrivals)) if found.scores is None else np.minimum(found.scores, largest)
    out = [place for place, kept in enumerate(found.kept.tolist()) if not kept]
    return {"filtered": len(out), **{f"filtered/{arrivals[i].ticket}": float(scores[i]) for i in out}}
