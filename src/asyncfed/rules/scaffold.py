"""SCAFFOLD: local steps corrected by control variates, so that clients do not drift to their own optima.

Paper: Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020; option II.

    every local step:  y = y - rate (g(y) + c - c_i)
    at a merge:        c_i+ = c_i - c + (w_b - y) / (sum of the rates of its steps);     c = c + (c_i+ - c_i) / n

w_b is the model the client downloaded, y the one it ended with, n the number of **all** clients. c - c_i is the one
downloaded with w_b, in the steps and in c_i+: then c_i+ is the mean of the stochastic gradients of this pass (each
counting as much as its rate) under any delay, and c the mean of all c_i after every merge. So it is synchronous with
FedAvg and asynchronous with any other strategy; the paper knows the first only.

State: c_i for each client, made when it first reports, and their sum, all **at the server**, which can compute c_i+
from what it has; nothing at clients, so that they may come and go. Numbers of a model that no gradient moves, such as
the running statistics of a normalisation, have variates too, which mean nothing and which no step uses.
Bytes beyond the model: one vector, c - c_i, down; nothing up. (The paper sends c down and the change of c_i up.)

When to use it: several local steps on clients whose data differ. In the paper clients count the same whatever their
samples (FedAvg with `weighting = "equal"`), and the server's step is 1.

What goes wrong elsewhere: AFL-Lib makes the correction once, after training, and divides by epochs; fluke weighs
clients by samples and reads the learning rate after its scheduler has changed it; NVFlare makes the correction after
the step of the optimiser, which is right for plain SGD only. c has to be divided by n, not by the size of the cohort.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.record import Config
from asyncfed.core.types import Work
from asyncfed.registry import register
from asyncfed.rules.client_table import ClientTable
from asyncfed.rules.local_rates import sum_of_rates
from asyncfed.rules.mean import Mean
from asyncfed.rules.preparing import PreparingRule
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule
from asyncfed.rules.work_checks import refuse_settings
from asyncfed.rules.wrapping import refuse_second_sender


@register("rule")
class Scaffold(PreparingRule, Config, tag_field="kind", tag="scaffold"):
    """SCAFFOLD, option II: sends c - c_i with the model, to be added to the gradient of every local step.

        c_i = (start - model) / (sum of the rates) - (c - c_i as it was sent)
        c   = (1/n) sum over all n clients of c_i

    The model moves by the strategy's merge as usual. A client that made no step keeps its c_i. See the head of the
    module for the whole algorithm.

    Args:
        rule: how the arrivals become the next model.

    >>> from asyncfed.strategies import FedAvg
    >>> FedAvg(cohort_size=3, weighting="equal", rule=Scaffold()).rule.rule
    Mean()

    Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020.
    """

    rule: ServerRule = Mean()

    def check(self, work: Work) -> None:
        """Plain SGD from the server's model, and the exact model back."""
        gradient = "a client's variate is the mean gradient of plain SGD, which it computes from its change"
        refuse_settings("SCAFFOLD", work, momentum=gradient, proximal=gradient)
        refuse_settings("SCAFFOLD", work, start="the correction belongs to the model that is sent along with it")
        refuse_settings("SCAFFOLD", work, uplink="a client's variate is computed from the exact model it ended with")
        self.rule.check(work)

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """All variates are 0."""
        memory = super().init(params, num_clients)
        refuse_second_sender("SCAFFOLD", self.rule, memory)
        return {**memory, **ClientTable.init("c", params, num_clients)}

    def send(self, memory: Arrays, client: int) -> Arrays:
        """The correction c - c_i."""
        table = ClientTable(memory, "c")
        own = table.row(client)
        return {"correction": (table.mean() - own).astype(own.dtype)}

    def prepare(self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
        """The arrivals as they are; their clients' variates are replaced."""
        table = ClientTable(memory, "c")
        for a in arrivals:
            if a.steps > 0:
                moved = np.subtract(a.start, a.model, dtype=np.float64)
                gradient = moved / sum_of_rates(a.work, a.steps, a.num_examples) - a.sent["correction"]
                table.put(a.client, gradient)
        return arrivals
