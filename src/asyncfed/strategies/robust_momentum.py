"""Weighted robust aggregation of asynchronous momenta: on every arrival, a median of all clients' latest momenta.

Paper: Dahan & Levy, "Weight for Robustness: A Comprehensive Approach towards Optimal Fault-Tolerant Asynchronous ML",
NeurIPS 2024.

Rule:

    on arrival:  d_i = beta d_i + (1 - beta) D_i,   s_i = s_i + 1;     x = x + server_lr Aggr({d_j}; s_j / sum_j s_j)

D_i = w_i - w_base; the first d_i is D_i. Aggr is the weighted median of each coordinate (the first value at which the
cumulative weight exceeds 1/2); the rule `latest_momenta` takes any aggregator, such as the geometric median, and `ctma`
around one. Every arrival moves the model by the whole aggregate, so server_lr is 1/(2J) by name. beta is 0.5: with the
papers' 0.8 to 0.9 the model swings at such steps, because momenta of slow clients are old. Until three clients have
reported the model stays as it is. With equal counts it is the plain median.

State: a vector and a count per client at the server. Bytes beyond the model: none.

When to use it: some clients lie, the server has no data of its own, and nobody is to wait. Liars may have less than
half of all *updates*, not of all clients: one client with more than half of the reports is the median by itself, so
where liars may be fast set `by_count` off (each client counts once; of n, (n - 1) // 2 may lie), which is ours. The
momentum of a client that left stays until the end.

What goes wrong elsewhere: liars counted as a share of clients; the paper's averaging of iterates (AnyTime) and its
second momentum (mu2-SGD) are not here.

Confirmed: public code of the authors, as the algorithm sheet of this project records it.
"""

from __future__ import annotations

from asyncfed.rules.aggregators.median import Median
from asyncfed.rules.latest_momenta import LatestMomenta
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.async_sgd import AsyncSGD

add_algorithm(
    Algorithm(
        name="robust_momentum",
        summary="the median of all clients' latest momenta, weighted by their numbers of reports, on every arrival",
        make=lambda tickets, work, rate: AsyncSGD(
            concurrency=tickets,
            server_lr=0.5 / tickets,
            work=work,
            rule=LatestMomenta(aggregator=Median(liars=0 if tickets < 3 else 1)),
        ),
        family="robust",
        year=2024,
        timing="asynchronous",
        data="similar",
        server_memory="n",
        robust=True,
        evidence="code",
    ),
    __name__,
)
