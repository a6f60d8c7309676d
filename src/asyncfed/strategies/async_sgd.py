"""Asynchronous SGD: every change is added as it arrives, however stale.

Paper: Agarwal & Duchi, "Distributed Delayed Stochastic Optimization", NeurIPS 2011; the form with one client per ticket
is Algorithm 2 of Koloskova, Stich & Jaggi, "Sharper Convergence Guarantees for Asynchronous SGD for Distributed and
Federated Learning", NeurIPS 2022.

Rule:

    on arrival:  x = x + server_lr (w_i - w_base)

The papers have one local step, whose rate is to be small where many are at work. By name server_lr is 1 / (tickets out
at once): changes that answer to the same model then move it together as far as one of them would alone. With 1, the
class's default, local work that comes near a client's optimum overshoots, and with many tickets the model diverges.

State: none. Bytes beyond the model: none.

When to use it: as the plainest asynchronous baseline, and as the host of rules that keep a table of clients.

What goes wrong elsewhere: the change taken against the present model instead of the downloaded one; staleness counted
from 1.

Confirmed: the rule is the same in both papers, as far as they were read (abstracts and later papers' accounts).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from asyncfed.core.types import Action, Schedule, Update, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.arrival_rule import ArrivalRule
from asyncfed.strategies.dispatch import KeepBusy, RoundState, RuledStrategy, check_positive, merge_on_arrival
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate


@register("strategy")
class AsyncSGD(KeepBusy, RuledStrategy, tag_field="kind", tag="async_sgd"):
    """Asynchronous SGD: x = x + server_lr (w_i - w_base) on every arrival.

    A round is `concurrency` merged updates.

    Args:
        concurrency: tickets out at once, 1 or more.
        server_lr: what a change counts, above 0.
        sampler: which clients get the next tickets.
        work: what each client is asked to do; the papers' is one step.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the sum above.

    >>> AsyncSGD(server_lr=0.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.server_lr is 0.0; it must be a positive number.
    """

    concurrency: int = 5
    server_lr: float = 1.0
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = RoundState
    any_population: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("server_lr", self.server_lr)

    def on_update(self, state: RoundState, update: Update, view: View) -> tuple[RoundState, Sequence[Action]]:
        """Add the change."""
        merge, after = merge_on_arrival(state, update.report.ticket, self.server_lr, self.concurrency)
        return self.refill(after, view, [merge])

    def arrival_rule(self, view: View) -> ArrivalRule | None:
        """What `on_update` does, if it follows from the staleness alone."""
        if not self.may_decide_ahead:
            return None
        return ArrivalRule("add", self.concurrency, lambda staleness: self.server_lr)


add_algorithm(
    Algorithm(
        name="async_sgd",
        summary="asynchronous SGD: every change is added as it arrives, however stale",
        make=lambda tickets, work, rate: AsyncSGD(concurrency=tickets, server_lr=1.0 / tickets, work=work),
        family="staleness",
        year=2011,
        timing="asynchronous",
        data="similar",
        evidence="review",
    ),
    __name__,
)
