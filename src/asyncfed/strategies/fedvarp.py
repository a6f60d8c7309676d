"""FedVARP: FedAvg without the noise of who is in the cohort.

Paper: Jhunjhunwala, Sharma, Nagarkatti & Joshi, "FedVARP: Tackling the Variance Due to Partial Client Participation in
Federated Learning", UAI 2022.

Rule:

    each round, with the cohort S:   v = mean_S(D_i - y_i) + mean over all n clients of y_j;     x = x + eta v
    then                             y_i = D_i for i in S

D_i = w_i - x is the client's change; v is made with the y from before the round, which are 0 at first. By name eta = 1:
FedAvg with equal weights and the rule `ca2fl`, since this is CA2FL's rule with a cohort in place of a buffer.

Who leaves keeps its y; who joins makes n one larger and has y = 0 until it reports. A lost client is not in S.

State: a vector per client and their sum, at the server. Bytes beyond the model: none. (ClusterFedVARP, with one vector
per cluster of clients, is not built.)

When to use it: small cohorts of clients that differ in their data. Unlike `mifa` it is unbiased for cohorts drawn
uniformly, with more variance.

What goes wrong elsewhere: the mean over y made after y_i = D_i, which counts S twice; weights by samples in one of the
two means only.

Confirmed: the rule by a public implementation, read, whose state is divided by steps and rate, which is the same at
constant ones; with S = all it is FedAvg with equal weights (tests/strategies/test_rounds_with_a_table.py).
"""

from __future__ import annotations

from asyncfed.rules.ca2fl import CA2FL
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedavg import FedAvg

add_algorithm(
    Algorithm(
        name="fedvarp",
        summary="FedVARP: FedAvg calibrated by every client's last change, without the noise of the draw",
        make=lambda tickets, work, rate: FedAvg(cohort_size=tickets, weighting="equal", work=work, rule=CA2FL()),
        family="client table",
        year=2022,
        timing="synchronous",
        data="any",
        server_memory="n",
        evidence="adaptation",
        optimum=True,
    ),
    __name__,
)
