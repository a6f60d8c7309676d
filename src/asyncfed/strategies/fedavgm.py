"""FedAvgM: FedAvg with momentum at the server.

Paper: Hsu, Qi & Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification",
2019.

Rule:

    D = sum_i n_i D_i / sum_i n_i over the cohort;     m = b m + D;     x = x + lr m

By name: b = 0.9 and lr = 1 - b = 0.1, so that a steady change moves the model by itself, as with FedAvg, and what
differs from cohort to cohort is averaged over ten rounds. The common lr = 1 moves it ten times as far: stable as long
as a client's pass does not overshoot, since 2 (1 + b) = 3.8 is the limit, but it amplifies the differences between
small cohorts, and with cohorts of one client each, that differ, the loss need not fall at all. Raise
`strategy.rule.optimiser.lr` with large cohorts and little local work.

State: m, one model at the server. Bytes beyond the model: none.

When to use it: cohorts that differ; or, with a larger lr, changes that are small and point the same way for many
rounds.

What goes wrong elsewhere: m = b m + (1 - b) D, a mean of the changes, with the lr of the other form: ten times too
slow.

Confirmed: nothing but the general form of the heavy ball; that the paper has b = 0.9 among its values rests on memory.
b = 0, lr = 1 is FedAvg (tests/strategies/test_server_optimisers.py).
"""

from __future__ import annotations

from asyncfed.rules.momentum import Momentum
from asyncfed.rules.optimised import Optimised
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedavg import FedAvg

add_algorithm(
    Algorithm(
        name="fedavgm",
        summary="FedAvgM: FedAvg with momentum 0.9 at the server (rate 0.1)",
        make=lambda tickets, work, rate: FedAvg(
            cohort_size=tickets, work=work, rule=Optimised(optimiser=Momentum(lr=0.1))
        ),
        family="synchronous",
        year=2019,
        timing="synchronous",
        data="similar",
        server_memory="1",
        evidence="memory",
    ),
    __name__,
)
