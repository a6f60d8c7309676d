"""PORT: a buffer whose updates count by their samples, their staleness, and whether they point where the model went.

Paper: Su & Li, "How Asynchronous can Federated Learning Be?", IWQoS 2022.

Rule:

    every K reports:  x = x + sum_i p_i D_i,     D_i = w_i - w_base,
    p_i ~ n_i [a (cos(D_i, x - w_base) + 1) / 2 + b S / (tau_i + S)],     sum_i p_i = 1

A fresh update has the cosine 1, so a buffer of fresh ones is FedAvg's mean of changes. S is the bound on staleness. By
name K is the number of tickets out at once: with a small K several buffers answer to the same model, each of which
moves it by a whole mean, and much local work then overshoots.

Clients that are past S are asked to report early in the paper, with what they have so far. A ticket here is done or it
is not: there is no result of half of it. Instead `when_late` says what happens: "wait", the default, holds the buffer
back until no ticket in flight would be past S, so that the bound holds as it does in the paper, but late clients finish
their work first; "restart" cancels tickets that are past S, and their clients begin anew; "ignore" does neither.

State: the K changes of the buffer; the model of each ticket, which the server keeps anyway. Bytes beyond the model:
none.

When to use it: buffered, with clients whose sizes differ, and a few very late ones whose updates may point elsewhere.
With "wait", one client that is very slow stops everybody for a while every S versions.

What goes wrong elsewhere: a public implementation (Plato) takes the cosine with the move since the model of two rounds
ago, whatever the update's staleness; weights that are not normalised over the buffer.

Confirmed: the weights, their normalisation and the fresh cosine of 1 by Plato's code, written by the authors' group,
but for w_base, which there is the mistake above; that it is w_base rests on memory of the paper (its text was not
read). S = 10 is that code's default; a = 1 and b = 3 are its example's.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, ClassVar, Literal

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, replace
from asyncfed.core.types import Action, Cancel, Dispatch, Merge, Schedule, Train, Update, Work, staleness_of
from asyncfed.registry import register
from asyncfed.rules.moved_since import MovedSince
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.bounded_staleness import may_merge
from asyncfed.strategies.dispatch import DispatchPolicy, KeepBusy, SamplerState
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate


class PortState(SamplerState):
    """The buffer: tickets, samples of their clients, and what a sample of each counts."""

    tickets: tuple[int, ...] = ()
    examples: tuple[int, ...] = ()
    factors: tuple[float, ...] = ()


@register("strategy")
class Port(KeepBusy, Config, tag_field="kind", tag="port"):
    """PORT: a buffer of K updates, weighted by samples, similarity and staleness, the weights summing to one.

        p_i ~ n_i [similarity_weight (cos(w_i - w_base, x - w_base) + 1) / 2 + staleness_weight S / (staleness + S)]

    If all p_i would be 0 (nobody has samples, or all point the other way and staleness_weight is 0), all count the
    same. A round is one merge. See the head of the module for what becomes of late clients.

    Args:
        concurrency: tickets out at once, 1 or more.
        buffer_size: K, 1 or more.
        staleness_bound: S, in versions, 1 or more.
        similarity_weight: a, 0 or more.
        staleness_weight: b, 0 or more; not 0 if a is.
        when_late: what becomes of tickets that a merge would leave more than S versions old: the merge has to "wait"
            for them, and more may then be in the buffer; they are cancelled and begun anew ("restart"); or "ignore".
        sampler: which clients get the next tickets.
        work: what each client is asked to do.
        schedule: how the learning rate follows the rounds.

    >>> Port().factor(staleness=10, cosine=0.0)
    2.0

    Su & Li, "How Asynchronous can Federated Learning Be?", IWQoS 2022.
    """

    concurrency: int = 5
    buffer_size: int = 5
    staleness_bound: int = 10
    similarity_weight: float = 1.0
    staleness_weight: float = 3.0
    when_late: Literal["wait", "restart", "ignore"] = "wait"
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = PortState

    def __post_init__(self) -> None:
        if self.buffer_size < 1:
            raise ConfigError(f"strategy.buffer_size is {self.buffer_size}; a buffer holds at least 1 update.")
        if self.staleness_bound < 1:
            raise ConfigError(f"strategy.staleness_bound is {self.staleness_bound}; it must be at least 1 version.")
        for name in ("similarity_weight", "staleness_weight"):
            if not 0 <= getattr(self, name) < inf:
                raise ConfigError(f"strategy.{name} is {getattr(self, name)}; it must be zero or a positive number.")
        if not self.similarity_weight + self.staleness_weight > 0:
            raise ConfigError("strategy.similarity_weight and strategy.staleness_weight are both 0; set one above 0.")

    @property
    def rule(self) -> MovedSince:
        """What measures arrivals."""
        return MovedSince()

    @property
    def dispatch(self) -> DispatchPolicy:
        """How this strategy dispatches."""
        return DispatchPolicy("keep_busy", self.concurrency, self.buffer_size, predictable=False)

    def round_size(self, num_clients: int) -> int:
        """How many merged updates make a round: a full buffer."""
        return self.buffer_size

    def factor(self, staleness: int, cosine: float) -> float:
        """What a sample of an update counts, before the weights are made to sum to one."""
        bound = self.staleness_bound
        return self.similarity_weight * (cosine + 1.0) / 2.0 + self.staleness_weight * bound / (staleness + bound)

    def on_update(self, state: PortState, update: Update, view: View) -> tuple[PortState, Sequence[Action]]:
        """Put the update into the buffer; empty it when it is full."""
        report = update.report
        # No version passes before the buffer is emptied, so neither staleness nor cosine change while it waits.
        factor = self.factor(update.staleness, (report.metrics or {})["moved_cosine"])
        buffered = PortState(
            state.sampling,
            (*state.tickets, report.ticket),
            (*state.examples, report.num_examples),
            (*state.factors, factor),
        )
        return self._merge_if_due(buffered, view)

    def on_lost(self, state: PortState, dispatch: Dispatch, view: View) -> tuple[PortState, Sequence[Action]]:
        """A new ticket in place of the lost one, which may have been what a full buffer waited for."""
        return self._merge_if_due(state, view)

    def on_join(self, state: PortState, client: int, view: View) -> tuple[PortState, Sequence[Action]]:
        """More tickets, if there were not clients enough."""
        return self._merge_if_due(state, view)

    def _merge_if_due(self, state: PortState, view: View) -> tuple[PortState, Sequence[Action]]:
        if len(state.tickets) < self.buffer_size:
            return self.refill(state, view, [])
        if self.when_late == "wait" and not may_merge(view, self.staleness_bound):
            return state, []  # those that have reported wait too: else fast clients would fill the buffer meanwhile
        merge = Merge(state.tickets, _weights(state), keep=1.0, of="delta", ends_round=True)
        actions: list[Action] = [merge]
        if self.when_late == "restart":
            for dispatch in view.outstanding.values():  # oldest first
                if staleness_of(dispatch, view.version + 1) <= self.staleness_bound:
                    break
                actions.append(Cancel(dispatch.ticket, f"staleness is above staleness_bound {self.staleness_bound}"))
                actions.append(Train(dispatch.client, self.work, self.schedule))
        return self.refill(replace(state, tickets=(), examples=(), factors=()), view, actions)


def _weights(state: PortState) -> tuple[float, ...]:
    shares = [n * factor for n, factor in zip(state.examples, state.factors, strict=True)]
    total = sum(shares)
    return tuple([share / total for share in shares]) if total > 0 else (1.0 / len(shares),) * len(shares)


add_algorithm(
    Algorithm(
        name="port",
        summary="PORT: a buffer weighted by samples, staleness and direction; merges wait for whoever is too late",
        make=lambda tickets, work, rate: Port(concurrency=tickets, buffer_size=tickets, work=work),
        family="staleness",
        year=2022,
        timing="asynchronous",
        data="similar",
        server_memory="K",
        evidence="code",
        metrics=("moved_cosine",),
    ),
    __name__,
)
