"""Cyclic participation: cohorts come in one order that stays, each client once per cycle.

Paper: Eichner et al., "Semi-Cyclic Stochastic Gradient Descent", ICML 2019; Cho et al., "On the Convergence of
Federated Averaging with Cyclic Client Participation", ICML 2023.

Rule:

    each round:  the next J clients of the order 0, ..., n - 1, 0, ... train from x;     x = mean of their models

It is synchronous FL (`sync`) with the sampler `fixed_cycle`, whose order may also be shuffled once. In Cho et al. there
may be more clients in a block than take part, and each round draws among them; here all of a block take part.

State: the order, n numbers. Bytes beyond the model: none.

When to use it: to see what happens if clients can take part at their times only, as phones do by night in their time
zone; or if an order is prescribed. The model follows the block that came last: with data that differ it moves back and
forth within each cycle, the less the smaller the steps. `random_reshuffling` is better where the order is free.

What goes wrong elsewhere: nothing is known to us that is peculiar to it.

Confirmed: by the papers' abstracts; the papers were not read again.
"""

from __future__ import annotations

from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedavg import FedAvg
from asyncfed.strategies.fixed_cycle_sampler import FixedCycle

add_algorithm(
    Algorithm(
        name="cyclic_participation",
        summary="synchronous FL whose cohorts come in a fixed order, each client once per cycle",
        make=lambda tickets, work, rate: FedAvg(
            cohort_size=tickets, weighting="equal", sampler=FixedCycle(), work=work
        ),
        family="synchronous",
        year=2019,
        timing="synchronous",
        data="any",
        evidence="memory",
        optimum=True,
    ),
    __name__,
)
