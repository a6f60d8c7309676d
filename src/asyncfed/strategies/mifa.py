"""MIFA: synchronous rounds in which clients that are not available count with their last change.

Paper: Gu, Huang, Zhang & Huang, "Fast Federated Learning in the Presence of Arbitrary Device Unavailability", NeurIPS
2021.

Rule:

    each round, with the clients S that reported:   h_i = D_i for i in S;     x = x + eta mean over all clients of h_i

D_i = w_i - x is the client's change. By name eta = 1, and S is a cohort drawn as FedAvg draws it, less those that are
lost. The paper divides D_i by the local rate and multiplies by one of the server, which is the same at a constant rate.

The authors' code waits until everybody has been available once, and then begins with changes of all clients from the
first model; or, in a second form, does not wait and has 0 for clients that have not reported, which makes its first
steps short. Here nobody is waited for either, but the mean is over the clients that have reported at least once. Who
leaves counts with its last change until it is back; who joins, from its first report on.

State: a vector per client and their sum, at the server. (The paper also has a form with the memory at clients.) Bytes
beyond the model: none.

When to use it: rounds, clients that differ in their data, and an availability that nobody knows: FedAvg then learns
what those want who are mostly there.

What goes wrong elsewhere: a public strategy for Flower fills in 0 for clients that have not reported before it looks
whether all have, so that it never waits for anybody, though it means to.

Confirmed: the rule and both ways to begin by the authors' code, which was read (fdu.py, fdu_no_wait.py), and by MIFA
with everybody available = FedAvg with equal weights (tests/strategies/test_rounds_with_a_table.py). The paper itself
was not read.
"""

from __future__ import annotations

from asyncfed.rules.table_mean import TableMean
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedavg import FedAvg

add_algorithm(
    Algorithm(
        name="mifa",
        summary="MIFA: rounds in which clients that are not available count with their last change",
        make=lambda tickets, work, rate: FedAvg(cohort_size=tickets, weighting="equal", work=work, rule=TableMean()),
        family="client table",
        year=2021,
        timing="synchronous",
        data="any",
        server_memory="n",
        evidence="code",
        optimum=True,
    ),
    __name__,
)
