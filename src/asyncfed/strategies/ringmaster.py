"""Ringmaster ASGD: add every change that is fresh enough, and begin again what can no longer be.

Paper: Maranjyan, Tyurin & Richtárik, "Ringmaster ASGD: The First Asynchronous SGD with Optimal Time Complexity", ICML
2025; Algorithm 5 with stops, Algorithm 4 without (`ringmaster_without_stops`).

Rule:

    on arrival:         x = x + server_lr (w_i - w_base)   if tau < R, else nothing
    after every merge:  with stops, each ticket that is out and now R versions old is cancelled and begun anew from x

The paper's R is max(1, ceil(sigma^2 / epsilon)), its step min(1/(2 R L), epsilon/(4 L sigma^2)); by name R is the
number in flight and server_lr 1/R. With R = 1 and stops every merge cancels all other tickets: sequential SGD by
whoever is fastest. With a very large R it is plain asynchronous SGD. What was computed for a cancelled ticket is
counted, in time and energy. A round is J merged updates.

State: none. Bytes beyond the model: none.

When to use it: all clients draw from the same distribution and speeds differ or change; it is then as fast as any
method can be, up to a constant factor. Homogeneous data only: who is always too late is never heard, so with differing
data the model is the fast clients' one. Without stops, where clients cannot be interrupted: what is too old runs to its
end and is dropped, so that slow clients are busy for nothing.

What goes wrong elsewhere: staleness compared with <=, so that R versions old is merged.

Confirmed: the rule with stops against the authors' code, and that both forms are the paper's by its list of algorithms;
R and the step of the theorem from memory. The variant whose R and step follow from the number of steps alone, without
knowing L or sigma^2, is not built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Action, Cancel, Drop, Schedule, Train, Update, Work, staleness_of
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import (
    DispatchPolicy,
    KeepBusy,
    RoundState,
    RuledStrategy,
    check_positive,
    merge_on_arrival,
)
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate


@register("strategy")
class Ringmaster(KeepBusy, RuledStrategy, tag_field="kind", tag="ringmaster"):
    """Ringmaster ASGD: asynchronous SGD that ignores what is R versions old or older, and stops who works on it.

        on arrival:         x = x + server_lr (w_i - w_base)   if tau < R, else nothing
        after every merge:  each ticket that is out and now R versions old is cancelled; its client begins anew from x

    Merged staleness is therefore 0 to R - 1. With R = 1 every merge cancels all other tickets, which is sequential SGD
    done by whoever is fastest; with a very large R it is plain asynchronous SGD. Without stops, old tickets run to
    their end and are then dropped: the same guarantee, but slow clients never get anywhere.

    It remembers how many updates were merged in the present round; a round is `concurrency` of them.

    When: all clients have the same data, or samples of the same distribution, and their speeds differ or change; it is
    then as fast as any method can be, up to constants. Pitfall: clients that are always R versions late are never
    heard, so with data that differ between clients the model converges to the fast ones' optimum, and no theorem
    covers it.

    Args:
        concurrency: tickets out at once, 1 or more.
        staleness_threshold: R, in versions, 1 or more. The paper's choice is max(1, ceil(sigma^2 / epsilon)), sigma^2
            being the variance of a stochastic gradient and epsilon the squared norm of the gradient to be reached.
        stops: whether tickets that have become too old are cancelled at once.
        server_lr: what a change counts, above 0. The paper's step is this times `work.learning_rate`.
        sampler: which clients get the next tickets. Whoever is stopped goes on itself.
        work: what each client is asked to do; the paper's is one step.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the sum above.

    >>> Ringmaster(staleness_threshold=0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.staleness_threshold is 0; it must be at least 1 version.

    Maranjyan, Tyurin & Richtárik, "Ringmaster ASGD: The First Asynchronous SGD with Optimal Time Complexity", 2025.
    """

    concurrency: int = 5
    staleness_threshold: int = 5
    stops: bool = True
    server_lr: float = 1.0
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = RoundState

    def __post_init__(self) -> None:
        if self.staleness_threshold < 1:
            raise ConfigError(
                f"strategy.staleness_threshold is {self.staleness_threshold}; it must be at least 1 version."
            )
        check_positive("server_lr", self.server_lr)

    @property
    def dispatch(self) -> DispatchPolicy:
        """How this strategy dispatches."""
        return DispatchPolicy("keep_busy", self.concurrency, predictable=False)

    def on_update(self, state: RoundState, update: Update, view: View) -> tuple[RoundState, Sequence[Action]]:
        """Add the change if it is fresh enough; then stop who has become too late."""
        ticket, limit = update.report.ticket, self.staleness_threshold
        if update.staleness >= limit:
            reason = f"staleness {update.staleness} has reached staleness_threshold {limit}"
            return self.refill(state, view, [Drop(ticket, reason)])
        merge, after = merge_on_arrival(state, ticket, self.server_lr, self.concurrency)
        actions: list[Action] = [merge]
        if self.stops:
            for dispatch in view.outstanding.values():  # oldest first
                if staleness_of(dispatch, view.version + 1) < limit:
                    break
                actions.append(Cancel(dispatch.ticket, f"staleness has reached staleness_threshold {limit}"))
                actions.append(Train(dispatch.client, self.work, self.schedule))
        return self.refill(after, view, actions)


add_algorithm(
    Algorithm(
        name="ringmaster",
        summary="Ringmaster ASGD: changes less than J versions old; older work is begun anew",
        make=lambda tickets, work, rate: Ringmaster(
            concurrency=tickets, staleness_threshold=tickets, server_lr=1.0 / tickets, work=work
        ),
        family="time-optimal",
        year=2025,
        timing="asynchronous",
        data="the same",
        certificate="yes",
        evidence="code",
    ),
    __name__,
)

add_algorithm(
    Algorithm(
        name="ringmaster_without_stops",
        summary="Ringmaster ASGD whose clients finish what they do: changes of J versions old or older are dropped",
        make=lambda tickets, work, rate: Ringmaster(
            concurrency=tickets, staleness_threshold=tickets, stops=False, server_lr=1.0 / tickets, work=work
        ),
        family="time-optimal",
        year=2025,
        timing="asynchronous",
        data="the same",
        certificate="yes",
        evidence="code",
    ),
    __name__,
)
