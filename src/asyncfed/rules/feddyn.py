"""FedDyn: each client's objective gets a linear term, so that all have the optimum of the mean as their own.

    client:  minimises F_i(w) - <g_i, w> + alpha/2 |w - w_base|^2, from w_base;     g_i+ = g_i - alpha (w_i - w_base)
    server:  h = (1/n) sum over all n clients of g_i;     x = mean over the cohort of w_i - h / alpha

alpha is `work.proximal`, so the clients' steps have the quadratic term already; -g_i is the correction that goes down
with the model, and g_i is kept at the server, which knows w_i and w_base. The paper moves h by -alpha/n times the sum
of the cohort's changes, which is the same as long as all begin at 0. Paper, use and mistakes of others: the card of
the algorithm, `strategies/feddyn.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Work
from asyncfed.registry import register
from asyncfed.rules.client_table import ClientTable
from asyncfed.rules.mean import Mean
from asyncfed.rules.preparing import PreparingRule
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule
from asyncfed.rules.work_checks import refuse_settings
from asyncfed.rules.wrapping import refuse_second_sender


@register("rule")
class FedDyn(PreparingRule, Config, tag_field="kind", tag="feddyn"):
    """FedDyn: sends -g_i with the model, which local steps add to their gradients, and moves what arrives by -h/alpha.

        g_i = g_i - alpha (w_i - w_base);     h = (1/n) sum over all n clients of g_i
        x   = sum_i weight_i (w_i - h / alpha)

    alpha is `work.proximal`, which has to be above 0. The paper's server takes the plain mean of the cohort: FedAvg
    with `weighting = "equal"`. With strategies that merge on arrival, each arrival is moved by the h that includes it;
    the paper knows rounds only. See the head of the module for the whole algorithm.

    Args:
        rule: how the moved arrivals become the next model.

    >>> FedDyn().check(Work())
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: work.proximal is 0.0; it is alpha of FedDyn, which must be above 0. Try 0.1.

    Acar et al., "Federated Learning Based on Dynamic Regularization", ICLR 2021.
    """

    rule: ServerRule = Mean()

    def check(self, work: Work) -> None:
        """A proximal term, the server's model to start from, and the exact model back."""
        if not work.proximal > 0:
            raise ConfigError(
                f"work.proximal is {work.proximal}; it is alpha of FedDyn, which must be above 0. Try 0.1."
            )
        refuse_settings("FedDyn", work, start="the correction belongs to the model that is sent along with it")
        refuse_settings("FedDyn", work, uplink="g_i is computed from the exact model that the client ended with")
        self.rule.check(work)

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """All g_i are 0."""
        memory = super().init(params, num_clients)
        refuse_second_sender("FedDyn", self.rule, memory)
        return {**memory, **ClientTable.init("g", params, num_clients)}

    def send(self, memory: Arrays, client: int) -> Arrays:
        """The correction -g_i."""
        return {"correction": -ClientTable(memory, "g").row(client)}

    def prepare(self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
        """Each model moved by -h / alpha, after its client's g_i has moved."""
        table = ClientTable(memory, "g")
        for a in arrivals:
            moved = np.subtract(a.model, a.start, dtype=np.float64)
            table.put(a.client, table.row(a.client) - a.work.proximal * moved)
        h = table.mean()
        return [a._replace(model=(a.model - h / a.work.proximal).astype(params.dtype)) for a in arrivals]
