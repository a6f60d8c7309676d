"""q-fair: FedAvg in which clients count the more, the larger their loss is.

Paper: Li, Sanjabi, Beirami & Smith, "Fair Resource Allocation in Federated Learning", ICLR 2020: q-FedAvg for the
objective q-FFL.

Rule: with F_k the loss of client k at the model it started from, D_k its change, L one over its learning rate:

    minimised:  sum_k F_k^(q+1) / (q+1)
    x = x + sum_k L F_k^q D_k / sum_k h_k,     h_k = q F_k^(q-1) |L D_k|^2 + L F_k^q

State: none. Bytes beyond the model: one number up. The client measures its loss before it trains, which costs about a
forward pass and no simulated time.

When to use it: losses are to be more alike among clients, at some cost of their mean. q = 0 is FedAvg with equal
weights; a large q comes near to minimising the largest loss, in ever smaller steps. L D_k is meant to be a gradient, so
after many local steps one over the rate is too large an L, and the steps are very short: then set `rule.smoothness` to
one over the sum of a pass's rates (the regression preset is solved in 60 rounds with 3, and hardly begun with 1000).
The rule goes with any strategy that merges models or changes, a buffer (FedBuff) too, whose discounts it keeps; a
single update merged on arrival has nobody to be weighed against, and is only damped.

What goes wrong elsewhere: the loss taken after training; weights F_k^q divided by their sum, without h, which is
another step; a rate of the server where L belongs. A client that reports too large a loss gets more than its share.

Confirmed: against the authors' code (flearn/trainers/qffedavg.py), which was read: loss of the downloaded model on all
training rows, 1e-10 added, L one over the learning rate. The text of the paper was not read. That clients are drawn
uniformly is the code's. The form for stale updates is ours.
"""

from __future__ import annotations

from asyncfed.core.record import replace
from asyncfed.rules.qfair import QFair
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedavg import FedAvg

add_algorithm(
    Algorithm(
        name="qfair",
        summary="q-FedAvg with q = 1: clients count the more, the larger their loss",
        make=lambda tickets, work, rate: FedAvg(
            cohort_size=tickets,
            weighting="equal",
            work=replace(work, start="server", start_loss=True),
            rule=QFair(),
        ),
        family="selection and fairness",
        year=2019,
        timing="synchronous",
        data="similar",
        extra_up="1 number",
        evidence="code",
        metrics=("start_loss",),
    ),
    __name__,
)
