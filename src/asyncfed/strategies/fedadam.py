"""FedAdam: FedAvg whose server takes Adam's step along the mean change.

Paper: Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 2.

Rule:

    D = sum_i n_i D_i / sum_i n_i over the cohort;     m = b1 m + (1 - b1) D;     v = b2 v + (1 - b2) D^2
    x = x + lr m / (sqrt(v) + eps)

without bias correction, from m = 0 and v = eps^2. By name: b1 = 0.9, b2 = 0.99 and eps = 1e-3, as published, and
lr = 0.03, which the paper tunes from 1e-3 to 10. No number of the model then moves by more than about 0.03 in a round;
and near an optimum, where sqrt(v) + eps tends to 1e-3, a step is at most 30 mean changes: with b1 = 0.9 that is stable
as long as it is below 2 (1 + b1) / (1 - b1) = 38 and a client's pass does not overshoot its own optimum. Tune
`strategy.rule.optimiser.lr` first.

State: m and v, two models at the server. Bytes beyond the model: none.

When to use it: numbers of the model whose gradients differ in size by orders of magnitude (text, sparse features), many
rounds. On well scaled data FedAvg is as good and has nothing to tune.

What goes wrong elsewhere: Flower's FedAdam corrects the bias, with the power round + 1, and starts at v = 0; fluke has
b2 = 0.999, eps = 1e-4 and v = 0. `Adam(bias_correction=True, v0=0)` is that variant.

Confirmed: the rule, the values, v = eps^2 at the start and no bias correction by notes on the paper that were read;
they have the plain mean of the cohort, as `strategy.weighting = "equal"` gives. Flower's and fluke's code were read
too. The paper itself was not. eps = lr = 1e12, b1 = 0 is FedAvg (tests/rules/test_optimised.py).
"""

from __future__ import annotations

from asyncfed.rules.adam import Adam
from asyncfed.rules.optimised import Optimised
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedavg import FedAvg

add_algorithm(
    Algorithm(
        name="fedadam",
        summary="FedAdam: FedAvg, the server takes Adam's step along the mean change (rate 0.03)",
        make=lambda tickets, work, rate: FedAvg(
            cohort_size=tickets, work=work, rule=Optimised(optimiser=Adam(lr=0.03))
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
