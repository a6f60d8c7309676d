"""What rules share that let an aggregator make one vector of several: its memory, and what it needs."""

from __future__ import annotations

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.rules.aggregators.protocol import Aggregate, Aggregator
from asyncfed.rules.protocol import Arrays
from asyncfed.rules.wrapping import with_prefix, without_prefix

OWN = "aggregator/"


def is_enough(aggregator: Aggregator, count: int) -> bool:
    """Whether the aggregator works with so many vectors."""
    try:
        aggregator.check(count)
    except ConfigError:
        return False
    return True


def aggregate_in(
    memory: Arrays, aggregator: Aggregator, vectors: np.ndarray, weights: np.ndarray, ids: np.ndarray
) -> Aggregate:
    """The aggregate, whose memory is in that of the rule; `weights` need not sum to 1."""
    own = without_prefix(memory, OWN)
    found, after = aggregator.aggregate(vectors, weights / weights.sum(), own, ids)
    memory.update(with_prefix(after, OWN))
    return found
