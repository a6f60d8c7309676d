"""Model cache: the latest model of every client, and the server's model as their mean by samples. SAFA's server.

    before the mean:   forgotten clients are out;  c_k = x for synchronised clients;  c_k = w_k for picked ones
    the mean:          x = sum_k (n_k / n) c_k      over all clients, also those that never reported
    after the mean:    c_k = w_k for undrafted ones, which count from the next merge on

c_k is the first model until something replaces it. Who is picked, undrafted or synchronised, and what each client
counts, is told by the strategy with the merge.

State: a model per client, kept as its difference from the first one. Bytes beyond the model: none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from asyncfed.core.record import Config
from asyncfed.core.types import Merge, Work
from asyncfed.registry import register
from asyncfed.rules.client_table import ClientTable
from asyncfed.rules.protocol import Arrays, Arrival, Rule
from asyncfed.rules.work_checks import refuse_settings


@register("rule")
class ModelCache(Rule, Config, tag_field="kind", tag="model_cache"):
    """x = sum_k (n_k / n) c_k over all clients, c_k being the client's model in the cache.

    A merge's settings, in this order:

    - `picked`: so many of its tickets, the first ones, are in the mean at once; the others from the next merge on;
    - `counts`: n_k of the client of each ticket;
    - `total`: n, the sum over all clients here;
    - `synchronised`: pairs of a client and its n_k, whose model in the cache becomes x as it is before the merge;
    - `forgotten`: clients that are not here any more.

    Without settings all are picked and clients count the same. It is the rule of the strategy `safa`.

    >>> ModelCache().theorem is None
    True

    Wu et al., "SAFA: A Semi-Asynchronous Protocol for Fast Federated Learning With Low Overhead", IEEE Transactions on
    Computers 2021.
    """

    def check(self, work: Work) -> None:
        """Clients have to start from the server's model."""
        refuse_settings("ModelCache", work, start="lag is counted in versions of the server's model")

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """Everybody's model is the first one."""
        return {"first": params.copy(), "counts": np.zeros(0), **ClientTable.init("cache", params, num_clients)}

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """Put the picked models into the cache, take its mean, put the undrafted ones in."""
        table, first = ClientTable(memory, "cache"), memory["first"]
        clients = max([table.num_clients, *(arrival.client + 1 for arrival in arrivals)])
        told: tuple[Any, ...] = (len(arrivals), (1,) * len(arrivals), clients, (), ())
        if merge.combiner is not None:
            told = tuple([value for _, value in merge.combiner.settings])
        picked, counts, total, synchronised, forgotten = told
        for client in forgotten:
            table.forget(client)
            _set_count(memory, client, 0.0)
        for client, count in synchronised:
            table.put(client, params - first)
            _set_count(memory, client, count)
        for place, (arrival, count) in enumerate(zip(arrivals, counts, strict=True)):
            _set_count(memory, arrival.client, count)
            if place < picked:
                table.put(arrival.client, arrival.model - first)
        mean = np.zeros(params.size)
        for client in np.flatnonzero(memory["counts"]).tolist():
            mean += (memory["counts"][client] / total) * table.row(client)
        for arrival in arrivals[picked:]:
            table.put(arrival.client, arrival.model - first)
        return (first + mean).astype(params.dtype), memory, {}


def _set_count(memory: Arrays, client: int, count: float) -> None:
    """What this client counts from now on; who has none has the first model, whose difference from itself is 0."""
    if client >= memory["counts"].size:
        memory["counts"] = np.pad(memory["counts"], (0, client + 1 - memory["counts"].size))
    memory["counts"][client] = count
