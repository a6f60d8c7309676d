"""FedNova: FedAvg with changes per local step, so that who makes more steps does not count more.

Paper: Wang, Liu, Liang, Joshi & Poor, "Tackling the Objective Inconsistency Problem in Heterogeneous Federated
Optimization", NeurIPS 2020.

Rule:

    x = x + tau_eff sum_i p_i D_i / a_i,     tau_eff = sum_i p_i a_i,     p_i = n_i / sum over the cohort of n_j

D_i = w_i - x is the client's change, and a_i says how many gradients, each at the local learning rate, it is made of:
its steps for plain SGD; see the rule `fednova` for momentum, decay and a proximal term. By name: FedAvg with weights by
samples and that rule.

State: none. Bytes beyond the model: none that count (the number of steps comes up).

When to use it: clients make different numbers of local steps (several epochs over tables of different sizes, work that
ends early). With equal steps it is FedAvg, to the last bit.

What goes wrong elsewhere: the authors' code uses steps instead of a_i in tau_eff when there is a proximal term, and
with momentum and a proximal term adds up both recursions, which is not defined: here that is refused. fluke forms
`sum_i (p_i tau_eff / a_i) w_i` of whole models, whose weights do not sum to 1: only changes may be scaled.

Confirmed: rule and both mistakes by the authors' and fluke's code; the closed forms of a_i by their recursions
(tests/rules/test_fednova.py).
"""

from __future__ import annotations

from asyncfed.rules.fednova import FedNova
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedavg import FedAvg

add_algorithm(
    Algorithm(
        name="fednova",
        summary="FedNova: FedAvg with changes per local step, for clients that make different numbers of them",
        make=lambda tickets, work, rate: FedAvg(cohort_size=tickets, work=work, rule=FedNova()),
        family="synchronous",
        year=2020,
        timing="synchronous",
        data="similar",
        extra_up="the steps",
        evidence="code",
    ),
    __name__,
)
