"""ASO-Fed: local gradients corrected by earlier ones, and a server that moves by what each client's model moved.

    every local step:  w = w - rate (s + h_i - s_i),     s = gradient of f_i + lam (w - w_base),  lam = work.proximal
    after a pass:      h_i = b h_i + (1 - b) s_i;     s_i = the mean of s over the steps of this pass
    server:            x = x + weight (w_i - c_i);    c_i = w_i

s_i and h_i are kept at the server, which computes the mean of s from the client's change, the sum of its rates and the
correction h_i - s_i that was sent along; c_i is its copy of the client's last model, the first model before there is
one. Paper, use and mistakes of others: the card of the algorithm, `strategies/aso_fed.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, replace
from asyncfed.core.types import Combine, Merge, Work
from asyncfed.registry import register
from asyncfed.rules.client_table import ClientTable
from asyncfed.rules.local_rates import sum_of_rates
from asyncfed.rules.mean import Mean
from asyncfed.rules.preparing import PreparingRule
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule
from asyncfed.rules.work_checks import refuse_settings
from asyncfed.rules.wrapping import refuse_second_sender


@register("rule")
class AsoFed(PreparingRule, Config, tag_field="kind", tag="aso_fed"):
    """ASO-Fed: sends h_i - s_i with the model, to be added to the gradient of every local step; counts a client's
    change from its last model, not from the one it downloaded.

        x = x + sum_i weight_i (w_i - c_i),     c_i the client's last model

    If every client's weight is always the same, and all weights sum to 1, x is the weighted mean of the clients' last
    models. A client that comes after the start has the model it first downloads as c_i: one with a number that was no
    client's at the start, or whose first merge says so (`newcomers`, its tickets). One that made no step keeps its s_i
    and h_i. See the head of the module for the whole algorithm.

    Args:
        balance: b, how much of h_i is kept with each pass, from 0 to 1; with 1, h_i stays 0.
        rule: how the changes become the next model.

    >>> AsoFed(balance=2.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: rule.balance is 2.0; it must be from 0 to 1.

    Chen et al., "Asynchronous Online Federated Learning for Edge Devices with Non-IID Data", IEEE Big Data 2020.
    """

    balance: float = 0.5
    rule: ServerRule = Mean()

    def __post_init__(self) -> None:
        if not 0 <= self.balance <= 1:
            raise ConfigError(f"rule.balance is {self.balance}; it must be from 0 to 1.")

    def check(self, work: Work) -> None:
        """Plain SGD from the server's model, and the exact model back."""
        refuse_settings("ASO-Fed", work, momentum="a client's mean gradient is computed from its change by plain SGD")
        refuse_settings("ASO-Fed", work, start="the correction belongs to the model that is sent along with it")
        refuse_settings(
            "ASO-Fed", work, uplink="a client's mean gradient is computed from the exact model it ended with"
        )
        self.rule.check(work)

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """All gradients are 0, and all clients have the first model."""
        memory = super().init(params, num_clients)
        refuse_second_sender("ASO-Fed", self.rule, memory)
        for name in ("s", "h", "moved"):
            memory |= ClientTable.init(name, params, num_clients)
        return {**memory, "first": params.copy(), "num_clients": np.array(num_clients, np.int64)}

    def send(self, memory: Arrays, client: int) -> Arrays:
        """The correction h_i - s_i."""
        return {"correction": ClientTable(memory, "h").row(client) - ClientTable(memory, "s").row(client)}

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """Newcomers first get the model that they downloaded as c_i."""
        if merge.combiner is not None:
            tickets, moved = dict(merge.combiner.settings)["newcomers"], ClientTable(memory, "moved")
            for a in arrivals:
                if a.ticket in tickets:
                    moved.put(a.client, a.start - memory["first"])
            merge = replace(merge, combiner=None)
        return super().step(memory, params, arrivals, merge, key)

    def prepare(self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
        """Each start replaced by the client's last model; then model and gradients are kept."""
        moved = ClientTable(memory, "moved")  # c_i less the first model, so that 0 is right before the first report
        prepared = []
        for a in arrivals:
            known = moved.has_row(a.client) or a.client < int(memory["num_clients"])
            last = memory["first"] + moved.row(a.client) if known else a.start
            prepared.append(a._replace(start=last))
            moved.put(a.client, a.model - memory["first"])
            if a.steps > 0:
                self._keep_gradient(memory, a)
        return prepared

    def _keep_gradient(self, memory: Arrays, a: Arrival) -> None:
        s, h, b = ClientTable(memory, "s"), ClientTable(memory, "h"), self.balance
        h.put(a.client, b * h.row(a.client) + (1.0 - b) * s.row(a.client))
        change = np.subtract(a.start, a.model, dtype=np.float64)
        s.put(a.client, change / sum_of_rates(a.work, a.steps, a.num_examples) - a.sent["correction"])


def newcomers(*tickets: int) -> Combine:
    """What a merge tells the rule: these tickets are the first of clients that were not there at the start."""
    return Combine("aso_fed", (("newcomers", tickets),))
