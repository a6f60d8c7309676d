"""FedDyn: rounds in which every client's objective is moved so that it has its optimum where all of them have theirs.

Paper: Acar, Zhao, Matas Navarro, Mattina, Whatmough & Saligrama, "Federated Learning Based on Dynamic Regularization",
ICLR 2021.

Rule:

    client:  minimises F_i(w) - <g_i, w> + alpha/2 |w - x|^2, beginning at x;     g_i = g_i - alpha (w_i - x)
    server:  h = h - (alpha/n) sum over the cohort of (w_i - x);     x = mean over the cohort of w_i - h / alpha

h is the mean of all n clients' g_i. At a fixed point w_i = x, h = 0 and g_i is the gradient of F_i at x: the optimum of
the mean of all, however many local steps there are. -g_i goes down as a correction of every local gradient, alpha is
`work.proximal`, and g_i is kept at the server. By name: FedAvg with equal weights, the rule `feddyn`, and the work's
proximal term or, if it has none, alpha = 0.1 / (local rate). Alpha should be of the size of the curvature, which is
below 2 / rate wherever local steps are stable; the paper tries 0.001 to 0.1 with rates of 0.1 (from memory).

Who leaves keeps its g_i; who joins begins with 0 and makes n one larger.

State: a vector per client and their sum, at the server. Bytes: one vector more down. (The paper keeps g_i at clients
and sends nothing more.)

When to use it: clients differ in their data and do much local work. Alpha by name is on the safe side: where the rate
is far below what is stable, a smaller one is much faster (the regression preset is solved in 60 rounds with 10, not
with 100). With an alpha far below the curvature the server goes too far along what clients sent before, and the model
swings for long, most of all with small cohorts.

What goes wrong elsewhere: FedLab takes the server's model once from the sum of the cohort's models, instead of once per
client, in h; h moved by the mean over the cohort instead of by the sum over n; weights by samples, which the paper does
not have. The authors' code also divides alpha by the client's share of the samples, and reports the mean of the
cohort's models instead of x.

Confirmed: against the authors' code (g_i as a sum of changes, the mean over all clients of which is added to the mean
of the cohort) and FedLab's, both read; and by its fixed point (tests/rules/test_feddyn.py).
"""

from __future__ import annotations

from asyncfed.core.record import replace
from asyncfed.rules.feddyn import FedDyn
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedavg import FedAvg

add_algorithm(
    Algorithm(
        name="feddyn",
        summary="FedDyn: clients' objectives are moved until all have the optimum of their mean as their own",
        make=lambda tickets, work, rate: FedAvg(
            cohort_size=tickets,
            weighting="equal",
            work=replace(work, proximal=work.proximal or 0.1 / work.learning_rate),
            rule=FedDyn(),
        ),
        family="variance reduction",
        year=2021,
        timing="synchronous",
        data="any",
        server_memory="n",
        extra_down="1",
        evidence="code",
        optimum=True,
    ),
    __name__,
)
