"""CA2FL: FedBuff whose mean change is calibrated by what every client sent last.

Paper: Wang, Cao, Wu, Chen & Chen, "Tackling the Data Heterogeneity in Asynchronous Federated Learning with Cached
Update Calibration", ICLR 2024.

Rule:

    every K reports, from the clients S:   v = h + mean_S(D_i - h_i);   x = x + eta v
    then                                   h_i = D_i for i in S;   h = (1/n) sum over all n clients of h_i

D_i = w_i - w_base is the client's change against the model it downloaded; v is made with the h and h_i from before the
merge. A client that is in S twice is calibrated by its old h_i both times, and its last change is kept. By name:
FedBuff without a discount, with the rule `ca2fl`, K as large as the number of tickets, at most 10, and eta =
K / tickets. The paper has eta = 1, which is the same up to 10 tickets; with more, most changes are more than one buffer
old, and much local work makes the model swing.

State: a vector per client and their sum, at the server. A client that has not reported counts in h as 0; one that left
counts with its last change. Bytes beyond the model: none.

When to use it: clients differ in their data and report at different rates, so that fast ones would pull the model
towards their own optimum; and the server has room for a model per client. It is SAGA for changes: unbiased where the
mean over the table alone (`ace`) is not, with more variance.

What goes wrong elsewhere: AFL-Lib never fills the table, which leaves plain FedBuff; h made anew before v, so that the
change just received is counted twice.

Confirmed: the rule against the reference code, and by the limit "everybody in the buffer = FedBuff without a discount"
(tests/rules/test_ca2fl.py). A discount is no part of the paper.
"""

from __future__ import annotations

from asyncfed.rules.ca2fl import CA2FL
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.discounts import NoDiscount
from asyncfed.strategies.fedbuff import FedBuff

add_algorithm(
    Algorithm(
        name="ca2fl",
        summary="CA2FL: FedBuff, each change calibrated by the client's last one and the mean of all",
        make=lambda tickets, work, rate: FedBuff(
            concurrency=tickets,
            buffer_size=min(10, tickets),
            server_lr=min(10, tickets) / tickets,
            discount=NoDiscount(),
            work=work,
            rule=CA2FL(),
        ),
        family="client table",
        year=2024,
        timing="asynchronous",
        data="any",
        server_memory="n",
        evidence="code",
        optimum=True,
    ),
    __name__,
)
