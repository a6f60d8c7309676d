"""AsGrad: asynchronous SGD in three orders of handing out the model: pure, random, shuffled.

Paper: Islamov, Safaryan & Alistarh, "AsGrad: A Sharp Unified Analysis of Asynchronous-SGD Algorithms", AISTATS 2024.

Rule:

    every b reports:  x = x + mean of their changes, each taken at the model that its worker was assigned
    then b workers are assigned x:
        pure      those that have just reported
        random    uniformly drawn ones, busy or not
        shuffled  the next of a permutation of all n, which is drawn anew every n assignments, busy or not

At the beginning `concurrency` workers are assigned x0, all if there are as many. Busy workers queue what they are
assigned, and work on it later from the model of its assignment. By name b = 1, and the mean change counts 1 / (tickets
out at once), as for `async_sgd`; the paper has one step of a rate that is small enough.

State: the order of the present cycle (shuffled); the b reports that wait. Bytes beyond the model: none.

When to use it: pure, if all workers have the same data, since nobody ever waits in a queue. If data differ, pure leans
to fast workers; random and shuffled hear everybody equally often, whatever the speeds, at the price of longer delays:
queues build up at slow workers. Shuffled has the smaller noise in the paper's analysis. With fewer tickets than
clients, pure leaves the others out for good.

What goes wrong elsewhere: the authors' code computes the gradient of a random or shuffled assignment on the data of the
worker that has just finished, not of the one that is assigned. Here a ticket is
trained on its own client's data.

Confirmed: the orders, the queues and that all workers begin with x0 by the authors' code (nodes.py). Its b is never
used; that the step is along the mean of the b changes, and that nothing is assigned meanwhile, rests on memory of the
paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeAlias

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Action, Dispatch, Merge, Schedule, Train, Update, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import DispatchPolicy, KeepBusy, RoundState, RuledStrategy, check_positive
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformAll, UniformIdle
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.strategies.shuffled_queue_sampler import ShuffledQueue
from asyncfed.strategies.wrapping import ViewWithout

Order: TypeAlias = Literal["pure", "random", "shuffled"]

SAMPLERS: dict[Order, Sampler] = {"pure": UniformIdle(), "random": UniformAll(), "shuffled": ShuffledQueue()}
"""Who is assigned the next model; in "pure", who takes the place of a worker that is gone."""


class AsGradState(RoundState):
    """Reports that wait for others: their tickets, and whose they are."""

    tickets: tuple[int, ...] = ()
    clients: tuple[int, ...] = ()


@register("strategy")
class AsGrad(KeepBusy, RuledStrategy, tag_field="kind", tag="asgrad"):
    """AsGrad: x = x + (server_lr / b) sum of b changes as they arrive; then b workers are assigned the new model.

    A round is `concurrency` merged updates or a few more, if b does not divide it. If so many workers are gone that b
    reports cannot come together, what there is is merged.

    Args:
        concurrency: tickets out at once, 1 or more; the paper's is the number of clients.
        order: who is assigned the new model: "pure", those that have just reported; "random", uniformly drawn clients;
            "shuffled", the next of a permutation that is drawn anew every n assignments. In the latter two, a busy
            client queues the ticket.
        wait_for: b, how many reports make a step, from 1 to `concurrency`.
        server_lr: what the mean change counts, above 0.
        work: what each client is asked to do; the paper's is one step.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the sum above.

    >>> AsGrad(order="shuffled").sampler
    ShuffledQueue()

    Islamov, Safaryan & Alistarh, "AsGrad: A Sharp Unified Analysis of Asynchronous-SGD Algorithms", AISTATS 2024.
    """

    concurrency: int = 5
    order: Order = "shuffled"
    wait_for: int = 1
    server_lr: float = 1.0
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = AsGradState

    def __post_init__(self) -> None:
        check_positive("server_lr", self.server_lr)
        if not 1 <= self.wait_for <= self.concurrency:
            raise ConfigError(
                f"strategy.wait_for is {self.wait_for}; with {self.concurrency} tickets out at once it must be from 1 "
                f"to {self.concurrency}. Lower it, or raise strategy.concurrency."
            )

    @property
    def sampler(self) -> Sampler:  # type: ignore[override]
        """Who is assigned the next model, as the order has it."""
        return SAMPLERS[self.order]

    @property
    def dispatch(self) -> DispatchPolicy:
        """How this strategy dispatches."""
        return DispatchPolicy("keep_busy", self.concurrency, self.wait_for, predictable=self.order != "pure")

    def start(self, view: View) -> tuple[Any, Sequence[Action]]:
        """The first tickets, for different clients as far as there are enough."""
        if self.order != "random":
            return super().start(view)
        first, _ = UniformIdle().draw(None, view, self.concurrency)
        more, _ = UniformAll().draw(None, view, self.concurrency - len(first))
        return AsGradState(None), [Train(client, self.work, self.schedule) for client in (*first, *more)]

    def on_update(self, state: AsGradState, update: Update, view: View) -> tuple[AsGradState, Sequence[Action]]:
        """Step and assign the new model, if enough reports are there."""
        report = update.report
        tickets, clients = (*state.tickets, report.ticket), (*state.clients, report.client)
        waiting = AsGradState(state.sampling, state.merged_this_round, tickets, clients)
        if len(tickets) < self.wait_for and view.in_flight:
            return waiting, ()
        return self._step(waiting, view)

    def on_lost(self, state: AsGradState, dispatch: Dispatch, view: View) -> tuple[AsGradState, Sequence[Action]]:
        """Another assignment in place of the lost one; or a step with what waits, if nobody is left to wait for."""
        after, actions = self._assign(state, (dispatch.client,), view, [])
        if after.tickets and not view.in_flight and not actions:
            return self._step(after, view)
        return after, actions

    def on_join(self, state: AsGradState, client: int, view: View) -> tuple[AsGradState, Sequence[Action]]:
        """More tickets, if there were not clients enough."""
        return self._assign(state, (), view, [])

    def _step(self, state: AsGradState, view: View) -> tuple[AsGradState, Sequence[Action]]:
        count = len(state.tickets)
        merged = state.merged_this_round + count
        ends_round = merged >= self.concurrency
        merge = Merge(state.tickets, (self.server_lr / count,) * count, keep=1.0, of="delta", ends_round=ends_round)
        after = AsGradState(state.sampling, 0 if ends_round else merged)
        return self._assign(after, state.clients, view, [merge])

    def _assign(
        self, state: AsGradState, free: tuple[int, ...], view: View, actions: list[Action]
    ) -> tuple[AsGradState, Sequence[Action]]:
        """The missing tickets; in "pure" those of `free` that are still here come first."""
        held, seen = len(state.tickets), view
        if self.order == "pure":
            for client in free:
                if client in view.idle:
                    actions.append(Train(client, self.work, self.schedule))
                    held, seen = held + 1, ViewWithout(seen, client)
            for client in state.clients:  # theirs come with the step they wait for
                seen = ViewWithout(seen, client)
        return self.refill(state, seen, actions, held)


for _order, _words, _data in (
    ("pure", "AsGrad, pure: whoever reports goes on with the new model", "similar"),
    ("random", "AsGrad, random: the new model goes to anybody, who queues it if busy", "any"),
    ("shuffled", "AsGrad, shuffled: the new model goes round all clients, in an order shuffled each time", "any"),
):
    add_algorithm(
        Algorithm(
            name=f"asgrad_{_order}",
            summary=_words,
            make=lambda tickets, work, rate, order=_order: AsGrad(  # type: ignore[misc]
                concurrency=tickets, order=order, server_lr=1.0 / tickets, work=work
            ),
            family="staleness",
            year=2023,
            timing="asynchronous",
            data=_data,  # type: ignore[arg-type]
            evidence="code",
            optimum=_order != "pure",
        ),
        __name__,
    )
