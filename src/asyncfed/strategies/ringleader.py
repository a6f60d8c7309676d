"""Ringleader ASGD: a table with a batch of changes per client, and exactly one step per client in each round.

Paper: Maranjyan & Richtárik, "Ringleader ASGD: The First Asynchronous SGD with Optimal Time Complexity under Data
Heterogeneity", 2025.

Rule: a round has two phases; G_i is the batch of client i, all of it computed at one model

    phase 1:  collect changes, without a step, until every client's batch has one; who has finished computes again at
              the same model, and its changes join its batch
    phase 2:  n steps, one per client:  x = x + server_lr (1/n) sum_i mean(G_i);  the first when phase 1 is complete, by
              the client that completed it, each other when a client that has not had its step in this round reports,
              its change having joined its batch. With its step the client gets the new model, once per round.
              Changes of clients that have had their step belong to the table of the next round.

so that no change is discarded, and every change in the table was computed at a model at most 2n - 2 versions old.

State: the table (a vector per client, their sum) at the server, by the rule `batch_table`; the next round's table are
the reports that wait for it, a model each. Bytes beyond the model: none.

When to use it: clients' data differ, everybody has to count the same, speeds differ, and nobody is to be stopped. The
method needs no parameter but its step: the theorem's is min(1/(8 n L), epsilon B/(10 L sigma^2)), B the harmonic mean
of the counts; so it falls with n, as `server_lr` does if it is left out. Every round waits for the slowest client: one
whose tickets are all lost stops the run until it leaves. Meanwhile a client computes `most_changes` changes at one
model at most and then rests, which the paper does not do: beyond a hundred, more hardly make its mean better. Who
leaves is no longer waited for: its waiting changes are dropped, and its batch is out of the next round's table; if it
was the last that phase 1 waited for, the client with the latest ticket makes the first step. Who joins begins at once
and is in the next table that is completed. n is the number of clients in the round's table. Who loses its ticket begins
again at the same model if a change of its batch is still waiting, else at the present one, with a new batch.

What goes wrong elsewhere: the reference code sends the present model to clients that had their step already, so that a
batch mixes points; the paper's single delay per worker says that it has one. Steps in phase 1; a worker that gets a new
model with every report.

Confirmed: the step, its size, the harmonic mean B, delays of at most 2n - 2 and "exactly one update per worker per
round" by two public summaries of the paper; phases and the deviation by a review and the reference code, as the
algorithm sheet of this project records them. The paper's pseudocode itself was not at hand. What happens when clients
join, leave or lose a ticket is ours: the paper has none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from asyncfed.core.record import Config, Record, field, replace
from asyncfed.core.types import Action, Cancel, Dispatch, Drop, Merge, Schedule, Update, Work
from asyncfed.registry import register
from asyncfed.rules.batch_table import BatchTable, new_table
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.all_at_work import AllAtWork, TicketsByClient, check_most_changes
from asyncfed.strategies.dispatch import check_positive
from asyncfed.strategies.protocol import View
from asyncfed.strategies.schedules import ConstantRate


class RingleaderState(TicketsByClient):
    """The next table, and the clients that are still to have their step in this round.

    Args:
        tickets: reports that wait for the next table, by client; changed in place.
        to_step: clients whose step is still to come; none in phase 1. Changed in place.
        table_size: n, the number of clients in this round's table.
        resting: clients that have sent all the changes they may, and the versions of their models.
    """

    tickets: list[list[int]] = field(default_factory=list)
    to_step: list[int] = field(default_factory=list)
    table_size: int = 0
    resting: tuple[tuple[int, int], ...] = ()


@register("strategy")
class Ringleader(AllAtWork, Config, tag_field="kind", tag="ringleader"):
    """Ringleader ASGD: x = x + server_lr (1/n) sum_i mean(G_i), n such steps a round, one for each client.

    Everybody is at work. See the head of the module for the whole algorithm.

    Args:
        server_lr: the server's step along the mean, above 0; None for 1/n, with which the n steps of a round together
            are as long as one of Malenia SGD. The paper's step is this times `work.learning_rate`.
        most_changes: how many changes a client computes at one model for the next table, 1 or more; None for no limit.
        work: what each client is asked to do; the paper's is one step.
        schedule: how the learning rate follows the rounds.

    >>> Ringleader(server_lr=-1.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.server_lr is -1.0; it must be a positive number.
    """

    server_lr: float | None = None
    most_changes: int | None = 100
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Record]] = RingleaderState

    def __post_init__(self) -> None:
        if self.server_lr is not None:
            check_positive("server_lr", self.server_lr)
        check_most_changes(self.most_changes)

    @property
    def rule(self) -> BatchTable:
        """The table."""
        return BatchTable()

    def on_update(self, state: RingleaderState, update: Update, view: View) -> tuple[RingleaderState, Sequence[Action]]:
        """In phase 2, the step of a client that has not had one; else the change waits for the next table."""
        ticket, client = update.report.ticket, update.report.client
        if client in state.to_step:
            state.to_step.remove(client)
            merge = self._merge((ticket,), state.table_size, new=False, last=not state.to_step)
            return state, [merge, self.train(client)]
        state.add(client, ticket)
        if not _is_complete(state, view):
            base = update.dispatch.base_version
            if self.most_changes is not None and len(state.of(client)) >= self.most_changes:
                return replace(state, resting=(*state.resting, (client, base))), ()
            return state, [self.train(client, base)]
        after, actions = self._first_step(state, view, client)
        return after, [*actions, self.train(client)]

    def on_lost(self, state: RingleaderState, dispatch: Dispatch, view: View) -> tuple[Any, Sequence[Action]]:
        """The client begins again: at the model of its batch while a change of it waits, else at the present one."""
        client = dispatch.client
        if client not in view.clients:
            return state, ()
        return state, [self.train(client, dispatch.base_version if state.of(client) else None)]

    def on_leave(self, state: RingleaderState, client: int, view: View) -> tuple[Any, Sequence[Action]]:
        """Its waiting changes are dropped, and nobody waits for it."""
        actions: list[Action] = [Drop(ticket, "its client has left") for ticket in state.take(client)]
        if state.resting:
            state = replace(state, resting=tuple([each for each in state.resting if each[0] != client]))
        if client in state.to_step:
            state.to_step.remove(client)
        if not _is_complete(state, view):
            return state, actions
        latest = max(view.clients, key=lambda c: max(state.of(c)))
        after, first = self._first_step(state, view, latest)
        out = [Cancel(t, "its client gets a new model") for t, d in view.outstanding.items() if d.client == latest]
        return after, [*actions, *first, *out, self.train(latest)]

    def _first_step(self, state: RingleaderState, view: View, client: int) -> tuple[RingleaderState, Sequence[Action]]:
        """The first of a round, with the whole table; it is this client's. Who rested has to make a step too.

        They go on at their models while the waiting changes, which are merged next, still hold them.
        """
        again = [self.train(resting, base) for resting, base in state.resting if resting != client]
        tickets = tuple(sorted(ticket for waiting in state.tickets for ticket in waiting))
        others, size = [c for c in sorted(view.clients) if c != client], len(view.clients)
        return RingleaderState([], others, size), [*again, self._merge(tickets, size, new=True, last=not others)]

    def _merge(self, tickets: tuple[int, ...], size: int, new: bool, last: bool) -> Merge:
        step = 1.0 / size if self.server_lr is None else self.server_lr
        return Merge(
            tickets, (step / size,) * len(tickets), keep=1.0, of="delta", combiner=new_table(new), ends_round=last
        )


def _is_complete(state: RingleaderState, view: View) -> bool:
    """Whether it is phase 1 and every client that is here has a change in the next table."""
    return not state.to_step and len(view.clients) > 0 and all(state.of(client) for client in view.clients)


add_algorithm(
    Algorithm(
        name="ringleader",
        summary="Ringleader ASGD: a batch of changes per client, exactly one step per client in each round",
        make=lambda tickets, work, rate: Ringleader(work=work),
        family="time-optimal",
        year=2025,
        timing="asynchronous",
        data="any",
        server_memory="2n",
        evidence="review",
        optimum=True,
    ),
    __name__,
)
