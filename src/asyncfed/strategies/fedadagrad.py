"""FedAdagrad: FedAvg whose server takes Adagrad's step along the mean change, ever shorter where changes were large.

Paper: Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 2.

Rule:

    D = sum_i n_i D_i / sum_i n_i over the cohort;     v = v + D^2;     x = x + lr D / (sqrt(v) + eps)

from v = eps^2, without momentum (b1 = 0). By name: eps = 1e-3, as published, and lr = 0.3, which the paper tunes from
1e-3 to 10. Any lr is stable, because steps that swing make v grow; no number of the model moves by more than 0.3 in a
round, nor by more than about 0.6 sqrt(t) in t rounds, which is what to raise `strategy.rule.optimiser.lr` for.

State: v, one model at the server (and m, which is the last change). Bytes beyond the model: none.

When to use it: sparse features, of which some are rarely seen; few rounds. In long runs its steps die out.

What goes wrong elsewhere: v = 0 at the start, so that the first step is lr in every direction, however small the
change.

Confirmed: with a constant D the step after t rounds is lr D / (sqrt(t) |D| + eps), from v = 0
(tests/rules/test_optimised.py). The rule, b1 = 0 and v = eps^2 at the start by notes on the paper that were read; they
have the plain mean of the cohort, as `strategy.weighting = "equal"` gives. The paper itself was not read.
"""

from __future__ import annotations

from asyncfed.rules.adagrad import Adagrad
from asyncfed.rules.optimised import Optimised
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedavg import FedAvg

add_algorithm(
    Algorithm(
        name="fedadagrad",
        summary="FedAdagrad: FedAvg, the server takes Adagrad's step along the mean change (rate 0.3)",
        make=lambda tickets, work, rate: FedAvg(
            cohort_size=tickets, work=work, rule=Optimised(optimiser=Adagrad(lr=0.3))
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
