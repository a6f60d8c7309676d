"""Random reshuffling of clients: cohorts drawn without replacement, until everybody had a turn.

Paper: Mishchenko, Khaled & Richtárik, "Random Reshuffling: Simple Analysis with Vast Improvements", NeurIPS 2020, for
SGD over samples; Malinovsky et al., "Federated Learning with Regularized Client Participation", 2023, for cohorts of
clients.

Rule:

    each cycle:  a fresh permutation of the n clients is cut into cohorts of J
    each round:  the next cohort trains from x;     x = mean of its models

It is synchronous FL (`sync`) with the sampler `shuffled_cycle` in place of `uniform_idle`. If J does not divide n, the
last cohort of a cycle is filled from the next one.

State: the order of the present cycle, n numbers. Bytes beyond the model: none.

When to use it: instead of drawing each cohort anew whenever everybody can be asked in turn: after each cycle all have
counted the same, so the noise of who was drawn nearly cancels, which shows late in a run and with small steps.

What goes wrong elsewhere: nothing is known to us that is peculiar to it. The same permutation in every cycle is another
method, shuffling once: the sampler `fixed_cycle` with the order "shuffled".

Confirmed: the permutation per cycle is the definition in the papers' abstracts; the papers were not read again.
"""

from __future__ import annotations

from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedavg import FedAvg
from asyncfed.strategies.samplers import ShuffledCycle

add_algorithm(
    Algorithm(
        name="random_reshuffling",
        summary="synchronous FL whose cohorts are drawn without replacement until everybody had a turn",
        make=lambda tickets, work, rate: FedAvg(
            cohort_size=tickets, weighting="equal", sampler=ShuffledCycle(), work=work
        ),
        family="synchronous",
        year=2020,
        timing="synchronous",
        data="any",
        evidence="memory",
        optimum=True,
    ),
    __name__,
)
