"""A table with one batch of changes per client, each batch computed at one model; a merge steps along the table.

Paper: Maranjyan & Richtárik, "Ringleader ASGD: The First Asynchronous SGD with Optimal Time Complexity under Data
Heterogeneity", 2025: the half of Ringleader ASGD that needs the vectors; see `asyncfed.strategies.ringleader`.

    on a merge:  each change is put into the batch G_i of its client;     x = x + weight sum_i mean(G_i)

State: a sum per client and the sum of their means, at the server. Bytes beyond the model: none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.record import Config
from asyncfed.core.types import Combine, Merge, Work
from asyncfed.registry import register
from asyncfed.rules.protocol import Arrays, Arrival, Rule
from asyncfed.rules.work_checks import refuse_settings

NO_BATCH = -1


@register("rule")
class BatchTable(Rule, Config, tag_field="kind", tag="batch_table"):
    """The mean of every client's batch: x = x + weight sum_i mean(G_i), over all clients that have a batch.

    A change that was computed at another model than those in its client's batch begins a new batch: one point per
    batch. A merge whose settings say so (`new_table`) empties the table first. All weights of a merge are the same:
    what each client's mean counts, such as server_lr / n.

    The journal gets `largest_delay` with each merge: how many versions ago the oldest model was downloaded that a batch
    of the table was computed at.
    """

    def check(self, work: Work) -> None:
        """Clients have to start from the server's model."""
        refuse_settings("batch_table", work, start="the changes it keeps are changes of the server's model")

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """No client has a batch."""
        return {
            "sums": np.zeros((num_clients, params.size)),
            "counts": np.zeros(num_clients, np.int64),
            "points": np.full(num_clients, NO_BATCH, np.int64),  # the version that a client's batch was computed at
            "total": np.zeros(params.size),  # the sum of the batches' means
            "version": np.zeros(1, np.int64),
        }

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """Put the changes into the table, and step along it."""
        version = int(memory["version"][0])
        anew = merge.combiner is not None and dict(merge.combiner.settings)["new_table"]
        if anew:
            memory["points"][:] = NO_BATCH
        _grow(memory, 1 + max(arrival.client for arrival in arrivals))
        sums, counts, points, total = (memory[name] for name in ("sums", "counts", "points", "total"))
        for arrival in arrivals:
            client, point = arrival.client, version - arrival.staleness
            if points[client] != NO_BATCH:
                total -= sums[client] / counts[client]
            if points[client] != point:
                sums[client], counts[client], points[client] = 0.0, 0, point
            sums[client] += arrival.change
            counts[client] += 1
            total += sums[client] / counts[client]
        filled = points != NO_BATCH
        if anew:  # once a round: rounding cannot build up
            total[:] = (sums[filled] / counts[filled, None]).sum(axis=0)
        memory["version"][0] = version + 1
        oldest = int(points[filled].min())
        stepped = params + arrivals[0].weight * total
        return stepped.astype(params.dtype), memory, {"largest_delay": float(version - oldest)}


def new_table(is_new: bool) -> Combine:
    """What a merge tells the rule: whether the table is to be emptied first."""
    return Combine("batch_table", (("new_table", is_new),))


def _grow(memory: Arrays, num_clients: int) -> None:
    more = num_clients - len(memory["counts"])
    if more > 0:
        memory["sums"] = np.pad(memory["sums"], ((0, more), (0, 0)))
        memory["counts"] = np.pad(memory["counts"], (0, more))
        memory["points"] = np.pad(memory["points"], (0, more), constant_values=NO_BATCH)
