"""The mean of every client's last change, in place of the changes that have just arrived.

    h_i = D_i for each arrival;     h = mean over the clients that have reported of h_i;     x = x + eta h

It is the read-out of the client table that ACE (on every arrival), ACED (without entries that are too old) and MIFA (in
rounds) share; CA2FL and FedVARP read the same table as h + mean(D_i - h_i). Their cards are in `strategies/`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.core.types import Work
from asyncfed.registry import register
from asyncfed.rules.client_table import ClientTable
from asyncfed.rules.mean import Mean
from asyncfed.rules.preparing import PreparingRule
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule
from asyncfed.rules.work_checks import refuse_settings

NEVER = -1
"""In the versions that entries were made from: there is no entry."""


@register("rule")
class TableMean(PreparingRule, Config, tag_field="kind", tag="table_mean"):
    """Each arrival counts as the mean h of all clients' last changes, its own new one among them.

        x = x + sum_i weight_i h,     h = (1/m) sum over the m clients that have an entry of h_j

    A client has an entry from its first merged report on, also while it is away; with `max_age`, until the model that
    its change was made from is more than so many versions old. If no entry is left, the model stays as it is.

    Args:
        max_age: the oldest entry that counts, in versions, 0 or more; left out, all count.
        rule: how the means become the next model.

    >>> TableMean(max_age=-1)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: rule.max_age is -1; it must be 0 or more versions, or left out for no limit.

    Gu et al., "Fast Federated Learning in the Presence of Arbitrary Device Unavailability", NeurIPS 2021.
    """

    max_age: int | UnsetType = UNSET
    rule: ServerRule = Mean()

    def __post_init__(self) -> None:
        if self.max_age is not UNSET and self.max_age < 0:
            raise ConfigError(
                f"rule.max_age is {self.max_age}; it must be 0 or more versions, or left out for no limit."
            )

    def check(self, work: Work) -> None:
        """Clients have to start from the server's model."""
        refuse_settings("table_mean", work, start="the changes it keeps are changes of the server's model")
        self.rule.check(work)

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """No client has reported."""
        memory = {**super().init(params, num_clients), **ClientTable.init("h", params, num_clients)}
        if self.max_age is UNSET:
            return memory
        return {**memory, "made_from": np.full(num_clients, NEVER, np.int64), "version": np.zeros((), np.int64)}

    def prepare(self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
        """Each model replaced by its start plus h."""
        table = ClientTable(memory, "h")
        for arrival in arrivals:
            table.put(arrival.client, arrival.change)
        if self.max_age is not UNSET:
            _forget_old(memory, table, arrivals, self.max_age)
        h = table.mean_of_rows()
        return [arrival._replace(model=(arrival.start + h).astype(params.dtype)) for arrival in arrivals]


def _forget_old(memory: Arrays, table: ClientTable, arrivals: Sequence[Arrival], max_age: int) -> None:
    """Forget entries made from models of too old a version. One that is too old can only become older."""
    version, made_from = int(memory["version"]), memory["made_from"]
    largest = max(arrival.client for arrival in arrivals)
    if largest >= made_from.size:
        made_from = np.pad(made_from, (0, max(largest + 1 - made_from.size, made_from.size)), constant_values=NEVER)
        memory["made_from"] = made_from
    for arrival in arrivals:
        made_from[arrival.client] = version - arrival.staleness
    for client in np.flatnonzero((made_from != NEVER) & (version - made_from > max_age)).tolist():
        table.forget(client)
        made_from[client] = NEVER
    memory["version"] = np.array(version + 1, np.int64)
