"""SCAFFOLD: local steps corrected by control variates, in rounds and, as ours, on arrival.

Paper: Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020; option II.

Rule:

    every local step:  y = y - lr (g(y) - c_i + c);     c_i+ = (w_base - w_i) / (sum of rates) - (c - c_i as sent)
    server:            x = x + mean of the changes;     c = mean over all n clients of c_i

`scaffold_async` is FedAsync with the same corrections: c is the one that was sent with w_base, and c_i changes when its
update is merged.

State: a vector per client and their sum, at the server. Bytes: one vector more down.

When to use it: clients differ in their data and make many local steps, which would drive them apart.

What goes wrong elsewhere: the correction applied once after training; dividing by epochs instead of steps; c moved by
the mean over the cohort instead of over all clients; rates read after the schedule has moved on.

Confirmed: option II against three public implementations and by c_i+ = the mean of the pass's gradients, exactly
(tests/rules/test_scaffold.py). The asynchronous form has no public counterpart.
"""

from __future__ import annotations

from asyncfed.core.record import replace
from asyncfed.rules.scaffold import Scaffold
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedasync import FedAsync
from asyncfed.strategies.fedavg import FedAvg

add_algorithm(
    Algorithm(
        name="scaffold",
        summary="SCAFFOLD, synchronous, equal weights",
        make=lambda tickets, work, rate: FedAvg(
            cohort_size=tickets,
            weighting="equal",
            work=replace(work, proximal=0.0),
            schedule=rate,
            rule=Scaffold(),
        ),
        family="variance reduction",
        year=2019,
        timing="synchronous",
        data="any",
        server_memory="n",
        extra_down="1",
        evidence="adaptation",
        optimum=True,
    ),
    __name__,
)

add_algorithm(
    Algorithm(
        name="scaffold_async",
        summary="FedAsync with the corrections of SCAFFOLD: clients that differ do not pull the model apart",
        make=lambda tickets, work, rate: FedAsync(
            concurrency=tickets, mixing=0.4, work=replace(work, proximal=0.0), schedule=rate, rule=Scaffold()
        ),
        family="variance reduction",
        year=2026,
        timing="asynchronous",
        data="any",
        server_memory="n",
        extra_down="1",
        evidence="ours",
        optimum=True,
    ),
    __name__,
)
