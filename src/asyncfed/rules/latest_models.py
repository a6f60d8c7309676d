"""LatestModels: a robust aggregate of every client's latest model; for AFL's "latest".

State: a model per client, and the aggregator's. Bytes beyond the model: none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.record import Config
from asyncfed.core.types import Merge, Work
from asyncfed.registry import register
from asyncfed.rules.aggregators.median import Median
from asyncfed.rules.aggregators.protocol import Aggregate, Aggregator
from asyncfed.rules.client_table import ClientTable
from asyncfed.rules.protocol import Arrays, Arrival, Rule
from asyncfed.rules.robust_parts import OWN, aggregate_in, is_enough
from asyncfed.rules.work_checks import refuse_settings
from asyncfed.rules.wrapping import with_prefix


@register("rule")
class LatestModels(Rule, Config, tag_field="kind", tag="latest_models"):
    """The next model is a robust aggregate of the latest models of all clients that have reported.

        x <- x + Aggr({w_c - x}),     w_c the latest model of client c

    Each client counts once, however often it reports, so that fast liars have no advantage: of n clients,
    `tolerates(n)` may lie. A client that has left is forgotten if the merge says so, as AFL's do. While fewer clients
    have reported than the aggregator needs, the model stays as it is, and the journal says so: `too_few`. AFL's own
    mean counts those that never reported as the first model; here they are left out, so that they hold nothing back.
    Weights and shares of merges are not used.

    Args:
        aggregator: what is made of the models.

    >>> from asyncfed.strategies import AFL
    >>> AFL(rule=LatestModels()).rule.aggregator.tolerates(7)
    3
    """

    aggregator: Aggregator = Median()

    def check(self, work: Work) -> None:
        """Clients have to start from the server's model."""
        refuse_settings("latest_models", work, start="models that clients never download are not comparable")

    def check_merge(self, merged_at_once: int, num_clients: int) -> None:
        """Refuse fewer clients than the aggregator needs."""
        self.aggregator.check(num_clients)

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """Nobody has reported."""
        return {**ClientTable.init("w", params, num_clients), **with_prefix(self.aggregator.init(params), OWN)}

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The aggregate of the latest models."""
        table = ClientTable(memory, "w")
        for client in dict(() if merge.combiner is None else merge.combiner.settings).get("forget", ()):
            table.forget(client)
        for arrival in arrivals:
            table.put(arrival.client, arrival.model)
        clients, models = table.rows()
        if not is_enough(self.aggregator, len(clients)):
            return params, memory, {"too_few": float(len(clients))}
        found = aggregate_in(memory, self.aggregator, models - params, np.ones(len(clients)), clients)
        return (params + found.vector).astype(params.dtype), memory, _findings(found, clients, arrivals)


def _findings(found: Aggregate, clients: np.ndarray, arrivals: Sequence[Arrival]) -> dict[str, float]:
    """How many clients were left out, and which of the updates that have just arrived are among them."""
    if found.kept is None or found.kept.all():
        return {}
    scores = np.zeros(len(clients)) if found.scores is None else found.scores
    left_out = {int(c): float(s) for c, s, kept in zip(clients, scores, found.kept, strict=True) if not kept}
    filtered = {f"filtered/{a.ticket}": left_out[a.client] for a in arrivals if a.client in left_out}
    return {"left_out": float(len(left_out)), **({"filtered": len(filtered), **filtered} if filtered else {})}
