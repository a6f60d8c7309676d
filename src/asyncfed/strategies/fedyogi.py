"""FedYogi: FedAvg whose server takes Yogi's step along the mean change.

Paper: Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 2.

Rule:

    D = sum_i n_i D_i / sum_i n_i over the cohort;     m = b1 m + (1 - b1) D;     v = v - (1 - b2) D^2 sign(v - D^2)
    x = x + lr m / (sqrt(v) + eps)

from m = 0 and v = eps^2. By name: b1 = 0.9, b2 = 0.99 and eps = 1e-3, as published, and lr = 0.03, which the paper
tunes from 1e-3 to 10; why 0.03 is sound, the card of `fedadam` says. Tune `strategy.rule.optimiser.lr` first.

State: m and v, two models at the server. Bytes beyond the model: none.

When to use it: as FedAdam, where changes come in bursts: v falls by at most (1 - b2) D^2 a round, so that the steps do
not grow again as fast as Adam's when changes become small.

What goes wrong elsewhere: v = 0 at the start (Flower), which makes the first steps too long where a change is small;
the sign taken of D^2 - v.

Confirmed: the rule, the values and v = eps^2 at the start by notes on the paper that were read; they have the plain
mean of the cohort, as `strategy.weighting = "equal"` gives. Flower's code was read too, the paper itself was not. From
v = 0 the first v is Adam's (tests/rules/test_optimised.py).
"""

from __future__ import annotations

from asyncfed.rules.optimised import Optimised
from asyncfed.rules.yogi import Yogi
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedavg import FedAvg

add_algorithm(
    Algorithm(
        name="fedyogi",
        summary="FedYogi: FedAvg, the server takes Yogi's step along the mean change (rate 0.03)",
        make=lambda tickets, work, rate: FedAvg(
            cohort_size=tickets, work=work, rule=Optimised(optimiser=Yogi(lr=0.03))
        ),
        family="synchronous",
        year=2020,
        timing="synchronous",
        data="similar",
        server_memory="2",
        evidence="review",
    ),
    __name__,
)
