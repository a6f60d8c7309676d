"""CA2FL: the buffer's mean change, calibrated by what every client sent last.

    flush S:  v = h + mean_S(D_i - h_i);   x = x + eta v;   then h_i = D_i and h = (1/n) sum over all n clients of h_i

D_i is the client's change against the model it downloaded; v is made with the h and h_i from before the flush. A client
that is in S twice is calibrated by its old h_i both times, and its last change is kept. Paper, use and mistakes of
others: the card of the algorithm, `strategies/ca2fl.py`. In rounds it is FedVARP: `strategies/fedvarp.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.record import Config
from asyncfed.core.types import Work
from asyncfed.registry import register
from asyncfed.rules.client_table import ClientTable
from asyncfed.rules.mean import Mean
from asyncfed.rules.preparing import PreparingRule
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule
from asyncfed.rules.work_checks import refuse_settings


@register("rule")
class CA2FL(PreparingRule, Config, tag_field="kind", tag="ca2fl"):
    """CA2FL: each change D_i counts as h + D_i - h_i, h_i the client's last change and h the mean of all.

        x = x + sum_i weight_i (h + D_i - h_i)

    which is the paper's `x + eta v` if all weights are eta / |S|: FedBuff with `server_lr = eta` and no discount, the
    paper's setting. With a discount, each calibrated change is damped by its own staleness, which the paper does not
    do. See the head of the module for the whole algorithm.

    Args:
        rule: how the calibrated changes become the next model.

    >>> from asyncfed.strategies import FedBuff
    >>> from asyncfed.strategies.discounts import NoDiscount
    >>> FedBuff(concurrency=4, buffer_size=3, discount=NoDiscount(), rule=CA2FL()).rule.rule
    Mean()

    Wang et al., "Tackling the Data Heterogeneity in Asynchronous Federated Learning with Cached Update Calibration",
    ICLR 2024.
    """

    rule: ServerRule = Mean()

    def check(self, work: Work) -> None:
        """Clients have to start from the server's model."""
        refuse_settings("CA2FL", work, start="the changes it keeps are changes of the server's model")
        self.rule.check(work)

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """No client has sent a change."""
        return {**super().init(params, num_clients), **ClientTable.init("h", params, num_clients)}

    def prepare(self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
        """Each model moved by h - h_i; then the changes are kept."""
        table = ClientTable(memory, "h")
        h = table.mean()
        calibrated = [a._replace(model=(a.model + (h - table.row(a.client))).astype(params.dtype)) for a in arrivals]
        for arrival in arrivals:
            table.put(arrival.client, arrival.change)
        return calibrated
