"""ACED: ACE without the changes that are too old.

Paper: Chang et al., "Mitigating Participation Imbalance Bias in Asynchronous Federated Learning", arXiv 2511.19066,
2025: the delay-aware variant of ACE.

Rule:

    warm-up and arrivals as with `ace`, but     x = x + eta mean of h_i over A,     A = {i: t - t_i <= T}

t is the present version, t_i the version of the model that client i's last change was made from, and T a threshold in
versions; the divisor is the number of clients in A. If A is empty, the model stays as it is. By name T is 20 times the
number of tickets, 20 rounds. With a T that is never reached it is ACE, to the last bit.

Who leaves, or is lost again and again, is out of the mean after T versions, and in it again with its next report. All
else is as with `ace`, the warm-up and eta included.

State: a vector per client in A and their sum, at the server. Bytes beyond the model: none.

When to use it: as ACE, where some clients are so slow, or away so long, that what they sent last is misleading. Clients
that are out of the mean are not represented: the optimum is then that of the others.

What goes wrong elsewhere: dividing by all n, which makes steps short whenever somebody is late; age counted from the
arrival of the change instead of from the model it was made from.

Confirmed: that it is ACE with a limit on delays, by the paper's abstract; t - t_i <= T with t_i the version at
dispatch, by the documentation of public code that repeats the experiments. That the divisor is the number kept rests on
memory. The paper's algorithm itself was not read.
"""

from __future__ import annotations

from asyncfed.rules.table_mean import TableMean
from asyncfed.strategies.ace import ACE
from asyncfed.strategies.algorithm import Algorithm, add_algorithm

add_algorithm(
    Algorithm(
        name="aced",
        summary="ACED: ACE without the changes made from models that are more than 20 rounds old",
        make=lambda tickets, work, rate: ACE(concurrency=tickets, work=work, rule=TableMean(max_age=20 * tickets)),
        family="client table",
        year=2025,
        timing="asynchronous",
        data="similar",
        server_memory="n",
        evidence="adaptation",
    ),
    __name__,
)
