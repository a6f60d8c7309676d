"""DC-ASGD: asynchronous SGD whose stale gradients are corrected for how far the model has moved since.

Paper: Zheng et al., "Asynchronous Stochastic Gradient Descent with Delay Compensation", ICML 2017.

Rule:

    on arrival:  x = x - eta (g + lam g*g*(x - w_base)),      adaptive: lam = lam0 / sqrt(meansq + eps)

g is the client's gradient at w_base, products are element by element, and lam g*g stands for the diagonal of the
Hessian. After several local steps, -g is the change divided by the sum of its rates, which goes beyond the paper. By
name: AsyncSGD with the rule `dc_asgd`, lam = 0.04, not adaptive, and changes that count 1 / (tickets out at once), so
that eta is the local rate divided by that; the paper tunes eta.

State: none beyond the models that tickets started from, which the server keeps anyway; with `adaptive`, one vector.
Bytes beyond the model: none.

When to use it: delays of a few versions, one or few local steps, gradients of the size of 1 (as those of a mean
cross-entropy are). lam g*g has to be of the size of the curvature: with a squared loss on large targets it is far too
large, and the correction overshoots. Then lower `rule.compensation`, or take another rule.

What goes wrong elsewhere: nothing is known to us that is peculiar to it; what is known of all asynchronous rules is a
change taken against the present model instead of the downloaded one.

Confirmed: rule and defaults (0.04; adaptive 2 and 0.95) against the reference code; lam = 0 or no delay is
asynchronous SGD, exactly (tests/rules/test_dc_asgd.py).
"""

from __future__ import annotations

from asyncfed.rules.dc_asgd import DcAsgd
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.async_sgd import AsyncSGD

add_algorithm(
    Algorithm(
        name="dc_asgd",
        summary="DC-ASGD: asynchronous SGD, stale gradients corrected to first order",
        make=lambda tickets, work, rate: AsyncSGD(
            concurrency=tickets, server_lr=1.0 / tickets, work=work, rule=DcAsgd()
        ),
        family="staleness",
        year=2016,
        timing="asynchronous",
        data="similar",
        evidence="code",
    ),
    __name__,
)
