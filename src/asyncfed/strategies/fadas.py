"""FADAS: AMSGrad at the server, on the mean of a buffer; its step shrinks when the buffer holds something stale.

Paper: Wang, Wang, Lu & Chen, "FADAS: Towards Federated Adaptive Asynchronous Optimization", ICML 2024.

Rule:

    every M reports, D = mean of their changes:
        m = b1 m + (1 - b1) D;    v = b2 v + (1 - b2) D^2;    vh = max(vh, v);    x = x + eta_t m / (sqrt(vh) + eps)
        eta_t = eta   if tau_max <= tau_c, tau_max the largest staleness in the buffer; beyond it
            `fadas`        eta / tau_max, and m / (1 - b1^t), vh / (1 - b2^t) in place of m, vh   (the authors' code)
            `fadas_paper`  min(eta, 1 / tau_max), no bias correction                              (the paper's formula)

The readings differ in every run with eta < 1: min(eta, 1 / tau_max) binds only if tau_max > 1 / eta, so at the code's
eta of 1e-4 it never shrinks anything.

State: m, v and vh, three vectors at the server, and the M changes of the buffer. Bytes beyond the model: none.

When to use it: gradients whose size differs much between parameters (language models, sparse features), where Adam is
better than SGD in the centre too. eta is a length per parameter and has to be tuned; 0.1 here, 1e-4 in the code.

What goes wrong elsewhere: v in place of vh (AFL-Lib). In the authors' script all but one of the new clients of a round
train from the model before the last step, while their change is taken against the present one and that step is not
counted as delay. Here the change is against the model that was downloaded.

Confirmed: `fadas`, that is eta / tau_max, the bias correction and its order (the maximum over v, then the correction),
by the authors' code (g_delay_adaptive.py, update.py); `fadas_paper` by a page that restates the paper's formula, not by
the paper itself. Defaults b1 0.9, b2 0.99, eps 1e-8, M 5, tau_c 1 are the code's.
"""

from __future__ import annotations

from typing import Literal

from asyncfed.core.types import Work
from asyncfed.rules.fadas import Fadas
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.discounts import NoDiscount
from asyncfed.strategies.fedbuff import FedBuff


def fadas(concurrency: int, work: Work, reading: Literal["code", "paper"] = "code") -> FedBuff:
    """FADAS with the defaults of the authors' code, but for the step: FedBuff without a discount, with the rule.

    Args:
        concurrency: tickets out at once; the buffer holds as many updates, at most 5.
        work: what each client is asked to do.
        reading: "code" or "paper", see the rule `Fadas`.

    Returns:
        The strategy.

    >>> fadas(8, Work()).buffer_size
    5
    """
    rule = Fadas(staleness_threshold=1, reading=reading)
    buffer_size = min(5, concurrency)
    return FedBuff(concurrency=concurrency, buffer_size=buffer_size, discount=NoDiscount(), work=work, rule=rule)


add_algorithm(
    Algorithm(
        name="fadas",
        summary="FADAS as its authors' code has it: AMSGrad on a buffer, step eta/staleness, bias correction",
        make=lambda tickets, work, rate: fadas(tickets, work),
        family="staleness",
        year=2024,
        timing="asynchronous",
        data="similar",
        server_memory="K+3",
        evidence="code",
    ),
    __name__,
)

add_algorithm(
    Algorithm(
        name="fadas_paper",
        summary="FADAS as its paper has it: AMSGrad on a buffer, step min(eta, 1/staleness)",
        make=lambda tickets, work, rate: fadas(tickets, work, "paper"),
        family="staleness",
        year=2024,
        timing="asynchronous",
        data="similar",
        server_memory="K+3",
        evidence="review",
    ),
    __name__,
)
