"""LatestMomenta: a robust aggregate of every client's latest momentum, weighted by how often it has reported.

State: a vector and a count per client, and the aggregator's. Bytes beyond the model: none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Merge, Work
from asyncfed.registry import register
from asyncfed.rules.aggregators.median import Median
from asyncfed.rules.aggregators.protocol import Aggregator
from asyncfed.rules.client_table import ClientTable
from asyncfed.rules.protocol import Arrays, Arrival, Rule
from asyncfed.rules.robust_parts import OWN, aggregate_in, is_enough
from asyncfed.rules.work_checks import refuse_settings
from asyncfed.rules.wrapping import with_prefix


@register("rule")
class LatestMomenta(Rule, Config, tag_field="kind", tag="latest_momenta"):
    """Each arrival moves the model along a robust aggregate of all clients' latest momenta.

        d_i <- beta d_i + (1 - beta) D_i,   s_i <- s_i + 1;     x <- x + W Aggr({d_j}; weights s_j / sum_j s_j)

    The first d_i is D_i. Only clients that have reported are aggregated; while these are fewer than the aggregator
    needs, the model stays as it is and the journal says so: `too_few`. With equal counts it is the plain aggregator;
    with `Average` the weighted average of momenta. What it withstands is counted in *updates*: liars with less than
    half of all reports (a median). One client with more than half of them *is* the median, so fast liars are worth
    more than slow ones; with `by_count` off every client counts the same, which its paper does not have.

    Args:
        aggregator: what is made of the momenta.
        momentum: beta, 0 up to below 1; 0 for the latest changes themselves. A table of momenta is old already: with
            0.9, as in papers, the model swings unless steps are very short.
        by_count: whether a client counts as often as it has reported, or once.

    >>> LatestMomenta(momentum=1.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: rule.momentum is 1.0; it must be 0 or more and below 1.

    Dahan & Levy, "Weight for Robustness: A Comprehensive Approach towards Optimal Fault-Tolerant Asynchronous ML",
    NeurIPS 2024.
    """

    aggregator: Aggregator = Median()
    momentum: float = 0.5
    by_count: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise ConfigError(f"rule.momentum is {self.momentum}; it must be 0 or more and below 1.")

    def check(self, work: Work) -> None:
        """Clients have to start from the server's model."""
        refuse_settings("latest_momenta", work, start="the changes it keeps are changes of the server's model")

    def check_merge(self, merged_at_once: int, num_clients: int) -> None:
        """Refuse fewer clients than the aggregator needs."""
        self.aggregator.check(num_clients)

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """Nobody has reported."""
        counts = {"reports": np.zeros(num_clients)}
        return {
            **counts,
            **ClientTable.init("d", params, num_clients),
            **with_prefix(self.aggregator.init(params), OWN),
        }

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """New momenta, and a step along their aggregate."""
        table = ClientTable(memory, "d")
        missing = max(arrival.client for arrival in arrivals) + 1 - memory["reports"].size
        if missing > 0:
            memory["reports"] = np.pad(memory["reports"], (0, missing))
        for arrival in arrivals:
            change, kept = arrival.change, self.momentum if table.has_row(arrival.client) else 0.0
            table.put(arrival.client, kept * table.row(arrival.client) + (1.0 - kept) * change)
            memory["reports"][arrival.client] += 1.0
        clients, momenta = table.rows()
        if not is_enough(self.aggregator, len(clients)):
            return params, memory, {"too_few": float(len(clients))}
        weights = memory["reports"][clients] if self.by_count else np.ones(len(clients))
        found = aggregate_in(memory, self.aggregator, momenta, weights, clients)
        total = sum(arrival.weight for arrival in arrivals)
        stepped: np.ndarray = (merge.keep * params + total * found.vector).astype(params.dtype)
        info = {} if found.kept is None or found.kept.all() else {"left_out": float((~found.kept).sum())}
        return stepped, memory, info
