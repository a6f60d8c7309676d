"""FedFa: the model is the mean of the last K models that arrived.

Paper: Xu, Zhang, Di, Liu, Alharthi & Cao, "FedFa: A Fully Asynchronous Training Paradigm for Federated Learning", IJCAI
2024.

Rule:

    on arrival:  w_i takes the place of the oldest model in a queue of K;     x = mean of the queue

The queue begins with K times the first model, so the first arrivals move the model by 1/K each.

State: K models at the server. Bytes beyond the model: none.

When to use it: as FedBuff, but with a step at every arrival: the mean over K smooths what a single client would do to
the model, and nobody waits for a buffer to fill. K near the number of clients at work. A fast client may hold several
places of the queue, so with data that differ the model leans to the fast ones.

What goes wrong elsewhere: nothing is known to us that is peculiar to it.

Confirmed: the queue of K, the replacement of the oldest and the plain mean by a public implementation by others than
the authors, the beginnings of two more, and accounts of the paper, which itself was not read. Those implementations
make no step before K models have arrived; ours has the first model in the places that are still empty, so that K = all
clients reporting in turn is AFL's mean of latest models from the first arrival on. The paper's variant that averages
changes is not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from asyncfed.core.record import Config
from asyncfed.core.types import Action, Schedule, Update, Work
from asyncfed.registry import register
from asyncfed.rules.last_models import LastModels
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import KeepBusy, RoundState, merge_on_arrival
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate


@register("strategy")
class FedFa(KeepBusy, Config, tag_field="kind", tag="fedfa"):
    """FedFa: x = mean of the last K models that arrived.

    K = 1 makes each arriving model the server's. A round is `concurrency` merged updates. A merge is written down with
    the weight 1/K, and what it keeps, 1 - 1/K, is the rest of the queue.

    Args:
        concurrency: tickets out at once, 1 or more.
        queue_size: K, 1 or more.
        sampler: which clients get the next tickets.
        work: what each client is asked to do.
        schedule: how the learning rate follows the rounds.

    >>> FedFa(queue_size=8).rule
    LastModels(queue_size=8)

    Xu et al., "FedFa: A Fully Asynchronous Training Paradigm for Federated Learning", IJCAI 2024.
    """

    concurrency: int = 5
    queue_size: int = 5
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = RoundState

    def __post_init__(self) -> None:
        _ = self.rule  # which checks the size

    @property
    def rule(self) -> LastModels:
        """The queue, and its mean."""
        return LastModels(queue_size=self.queue_size)

    def on_update(self, state: RoundState, update: Update, view: View) -> tuple[RoundState, Sequence[Action]]:
        """Put the model into the queue."""
        merge, after = merge_on_arrival(
            state, update.report.ticket, 1.0 / self.queue_size, self.concurrency, of="model"
        )
        return self.refill(after, view, [merge])


add_algorithm(
    Algorithm(
        name="fedfa",
        summary="FedFa: the mean of the last J models that arrived",
        make=lambda tickets, work, rate: FedFa(concurrency=tickets, queue_size=tickets, work=work),
        family="staleness",
        year=2024,
        timing="asynchronous",
        data="similar",
        server_memory="K",
        evidence="adaptation",
    ),
    __name__,
)
