"""FedNova: changes per local step, so that who makes more steps does not count more.

    x = x + tau_eff sum_i p_i D_i / a_i,     tau_eff = sum_i p_i a_i

p_i are the merge's weights, divided by their sum, and a_i says how many gradients, each at the local learning rate, the
change D_i is made of:

    plain SGD, s steps                   a = s (with decay: the sum of the rates divided by the learning rate)
    momentum r                           a = (s - r (1 - r^s) / (1 - r)) / (1 - r)           k = r k + 1;  a = a + k
    proximal mu, learning rate eta       a = (1 - (1 - eta mu)^s) / (eta mu)                 a = a (1 - eta mu) + 1

Paper, use and mistakes of others: the card of the algorithm, `strategies/fednova.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, log1p

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config
from asyncfed.core.types import Work
from asyncfed.registry import register
from asyncfed.rules.local_rates import sum_of_rates
from asyncfed.rules.mean import Mean
from asyncfed.rules.preparing import PreparingRule
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule, is_sum_only
from asyncfed.rules.work_checks import refuse_settings


def count_gradients(work: Work, steps: int, num_examples: int) -> float:
    """a: how many gradients, each at the local learning rate, a change after so many steps is made of.

    >>> count_gradients(Work(), steps=3, num_examples=96), count_gradients(Work(momentum=0.5), 2, 64)
    (3.0, 2.5)
    """
    if work.momentum is not UNSET:
        r = work.momentum
        return (steps - r * (1 - r**steps) / (1 - r)) / (1 - r)
    pull = work.learning_rate * work.proximal
    if pull > 0:
        return -expm1(steps * log1p(-pull)) / pull
    return sum_of_rates(work, steps, num_examples) / work.learning_rate


@register("rule")
class FedNova(PreparingRule, Config, tag_field="kind", tag="fednova"):
    """FedNova: each change D_i is scaled to the steps that clients make on average, tau_eff / a_i times.

        x = x + sum_i weight_i (tau_eff / a_i) D_i,     tau_eff = sum_i weight_i a_i / sum_i weight_i

    See the head of the module for a_i and the whole algorithm. A client that made no step counts in tau_eff as 0 steps.

    Args:
        rule: how the scaled changes become the next model.

    >>> FedNova().check(Work(momentum=0.9, proximal=0.1))
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: work.momentum is 0.9, which the rule FedNova cannot be used with: with a \
proximal term, gradients can be counted for plain SGD at a constant rate only. Leave work.momentum out, or use another \
rule.

    Wang et al., "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization", NeurIPS 2020.
    """

    rule: ServerRule = Mean()

    @property
    def sum_only(self) -> bool:
        """Whether the wrapped rule is: changes are scaled by the steps that clients made."""
        return is_sum_only(self.rule)

    def check(self, work: Work) -> None:
        """What the gradients of a change cannot be counted for."""
        refuse_settings("FedNova", work, start="its changes are changes of the server's model")
        if work.proximal > 0:
            both = "with a proximal term, gradients can be counted for plain SGD at a constant rate only"
            refuse_settings("FedNova", work, momentum=both, decay=both)
        if work.momentum is not UNSET:
            refuse_settings("FedNova", work, decay="its gradients with momentum are counted for a constant rate")
        if work.learning_rate * work.proximal >= 1:
            raise ConfigError(
                f"work.learning_rate * work.proximal is {work.learning_rate * work.proximal:g}; FedNova needs it below "
                "1, or a step overshoots the start. Lower one of them."
            )
        self.rule.check(work)

    def prepare(self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
        """Each change scaled by tau_eff / a_i."""
        counts = [count_gradients(a.work, a.steps, a.num_examples) for a in arrivals]
        total = sum(a.weight for a in arrivals)
        if total == 0 or len(set(counts)) == 1:
            return arrivals
        average = sum(a.weight * count for a, count in zip(arrivals, counts, strict=True)) / total
        scales = [average / count if count else 1.0 for count in counts]
        return [a._replace(model=a.start + scale * a.change) for a, scale in zip(arrivals, scales, strict=True)]
