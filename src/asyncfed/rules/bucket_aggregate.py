"""BucketAggregate: clients share buckets, and a robust aggregate of the buckets' means is the step. BASGD's vectors.

State: the aggregator's. Bytes beyond the model: none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Merge
from asyncfed.registry import register
from asyncfed.rules.aggregators.median import Median
from asyncfed.rules.aggregators.protocol import Aggregator
from asyncfed.rules.protocol import Arrays, Arrival, Rule
from asyncfed.rules.robust_parts import OWN, aggregate_in, is_enough
from asyncfed.rules.wrapping import with_prefix


@register("rule")
class BucketAggregate(Rule, Config, tag_field="kind", tag="bucket_aggregate"):
    """The changes of a merge go into buckets, client s into s mod B; a robust aggregate of the buckets' means is added.

        h_b = mean of the changes in bucket b;     x <- x + W Aggr(h_b),     W = the sum of the merge's weights

    Buckets without a change are left out; if fewer are left than the aggregator needs, the model stays as it is and
    the journal says so: `too_few`. Inside a bucket the order of changes does not matter, but for rounding.
    `tolerates(B)` buckets may be lies: with at most so many liars, wherever they are, the others are honest.

    Args:
        buckets: B, 1 or more.
        aggregator: what takes the place of the mean over buckets.

    >>> BucketAggregate(buckets=0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: rule.buckets is 0; there must be at least 1.

    Yang & Li, "BASGD: Buffered Asynchronous SGD for Byzantine Learning", ICML 2021.
    """

    buckets: int = 5
    aggregator: Aggregator = Median()

    def __post_init__(self) -> None:
        if self.buckets < 1:
            raise ConfigError(f"rule.buckets is {self.buckets}; there must be at least 1.")

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """The aggregator's memory."""
        return with_prefix(self.aggregator.init(params), OWN)

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """One step along the aggregate of the buckets' means."""
        members: dict[int, list[Arrival]] = {}
        for arrival in sorted(arrivals, key=lambda arrival: arrival.ticket):
            members.setdefault(arrival.client % self.buckets, []).append(arrival)
        if not is_enough(self.aggregator, len(members)):
            return params, memory, {"too_few": float(len(members))}
        numbers = sorted(members)
        means = np.stack([_mean([arrival.change for arrival in members[number]]) for number in numbers])
        equal = np.ones(len(numbers))
        found = aggregate_in(memory, self.aggregator, means.astype(params.dtype), equal, np.array(numbers))
        total = sum(arrival.weight for arrival in arrivals)
        info: dict[str, float] = {}
        if found.kept is not None and not found.kept.all():
            scores = np.zeros(len(numbers)) if found.scores is None else found.scores
            out = [place for place, kept in enumerate(found.kept.tolist()) if not kept]
            lies = [(arrival.ticket, float(scores[place])) for place in out for arrival in members[numbers[place]]]
            info = {"filtered": float(len(lies)), **{f"filtered/{ticket}": score for ticket, score in sorted(lies)}}
        stepped: np.ndarray = (merge.keep * params + total * found.vector).astype(params.dtype)
        return stepped, memory, info


def _mean(changes: Sequence[np.ndarray]) -> np.ndarray:
    total = np.zeros(changes[0].size)
    for change in changes:
        total += change
    return total / len(changes)
