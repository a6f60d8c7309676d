"""Malenia SGD: every client computes at the present model until the harmonic mean of their counts is large enough.

Paper: Tyurin & Richtárik, "Optimal Time Complexities of Parallel Stochastic Optimization Methods Under a Fixed
Computation Model", NeurIPS 2023, Method 6.

Rule: B_i is how many changes client i has sent since the last step, n the number of clients that are here

    everybody computes at x^k, and who has finished computes again at x^k, until  ((1/n) sum_i 1/B_i)^-1 > S/n
    x^{k+1} = x^k + server_lr (1/n) sum_i (1/B_i) sum_j D_ij;     all tickets that are out are cancelled and begun anew

State: the changes wait at the server until the step, B_1 + ... + B_n of them; a sum per client would do. Bytes beyond
the model: none.

When to use it: clients' data differ, everybody has to count the same, and speeds differ. Each step's expectation is the
step of the mean of all clients, whatever their speeds. With S = max(n, ceil(sigma^2 / epsilon)) no method without
assumptions on the data's likeness is faster than a constant factor. Every step waits for the slowest client: one whose
tickets are all lost stops the run until it leaves. Who leaves is no longer waited for, its changes are dropped and n is
one less; who joins begins at once and counts from this step on. Who has sent `most_changes` rests until the step, and
if all have, it is made: the paper has no such limit, but beyond a hundred, more changes hardly make a client's mean
better. Work of more than one step is our generalisation.

What goes wrong elsewhere: public code stops as soon as every B_i >= 1, which is right for S < n only and makes the
variance that of one change per client; the plain mean over all changes, which fast clients dominate; the arithmetic
mean of the counts in place of the harmonic one.

Confirmed: rule and stop by the survey (Tyurin et al. 2026), and the deviation by the authors' group's public code, as
the algorithm sheet of this project records them. S of the theorem rests on memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum
from typing import Any, ClassVar

from asyncfed.core.record import Record, field
from asyncfed.core.types import Action, Drop, Merge, Schedule, Update, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.all_at_work import AllAtWork, TicketsByClient, check_most_changes
from asyncfed.strategies.dispatch import RuledStrategy, check_positive
from asyncfed.strategies.protocol import View
from asyncfed.strategies.rennala import check_changes_per_step
from asyncfed.strategies.schedules import ConstantRate


class MaleniaState(TicketsByClient):
    """The tickets that wait for the step."""

    tickets: list[list[int]] = field(default_factory=list)


@register("strategy")
class Malenia(AllAtWork, RuledStrategy, tag_field="kind", tag="malenia"):
    """Malenia SGD: x = x + (server_lr / n) sum_i mean_j D_ij, once the harmonic mean of the counts is above S/n.

    Everybody is at work, all at the same x, so staleness is always 0. A round is one step. See the head of the module
    for the whole algorithm.

    Args:
        changes_per_step: S, 1 or more; with less than n the step is made as soon as everybody has sent one change. The
            paper's choice is max(n, ceil(sigma^2 / epsilon)), sigma^2 being the variance of a stochastic gradient and
            epsilon the squared norm of the gradient to be reached.
        server_lr: the server's step along the mean, above 0.
        most_changes: how many changes a client computes for one step, 1 or more; None for no limit.
        work: what each client is asked to do; the paper's is one step.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the sum above.

    >>> Malenia(server_lr=0.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.server_lr is 0.0; it must be a positive number.
    """

    changes_per_step: int = 1
    server_lr: float = 1.0
    most_changes: int | None = 100
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Record]] = MaleniaState
    merges_several = True  # everybody's

    def __post_init__(self) -> None:
        check_changes_per_step(self.changes_per_step)
        check_positive("server_lr", self.server_lr)
        check_most_changes(self.most_changes)

    def on_update(self, state: MaleniaState, update: Update, view: View) -> tuple[MaleniaState, Sequence[Action]]:
        """Collect the change; step if that was enough, else let the client compute again at the same model."""
        client = update.report.client
        state.add(client, update.report.ticket)
        if self._is_enough(state, view):
            return self._step(state, view)
        rests = self.most_changes is not None and len(state.of(client)) >= self.most_changes
        return state, () if rests else [self.train(client)]

    def on_leave(self, state: MaleniaState, client: int, view: View) -> tuple[MaleniaState, Sequence[Action]]:
        """Its changes are dropped, and it is no longer waited for."""
        drops: list[Action] = [Drop(ticket, "its client has left") for ticket in state.take(client)]
        if not self._is_enough(state, view):
            return state, drops
        after, actions = self._step(state, view, gone=client)
        return after, [*drops, *actions]

    def _is_enough(self, state: MaleniaState, view: View) -> bool:
        counts = [len(state.of(client)) for client in view.clients]
        if self.most_changes is not None and counts and min(counts) >= self.most_changes:
            return True
        return harmonic_mean_exceeds(counts, self.changes_per_step)

    def _step(self, state: MaleniaState, view: View, gone: int = -1) -> tuple[MaleniaState, Sequence[Action]]:
        share = self.server_lr / len(view.clients)
        weight_of = {t: share / len(state.of(c)) for c in view.clients for t in state.of(c)}
        tickets = tuple(sorted(weight_of))
        weights = tuple([weight_of[ticket] for ticket in tickets])
        merge = Merge(tickets, weights, keep=1.0, of="delta", ends_round=True)
        return MaleniaState(), [merge, *self.begin_anew(view, "the step was made without it", gone)]


def harmonic_mean_exceeds(counts: Sequence[int], changes: int) -> bool:
    """Whether the harmonic mean of these counts is above `changes` / n; not if one of them, or their number, is 0.

    >>> harmonic_mean_exceeds([1, 1, 4], 3), harmonic_mean_exceeds([1, 1, 1], 3), harmonic_mean_exceeds([9, 9, 0], 1)
    (True, False, False)
    """
    if not counts or 0 in counts:
        return False
    return len(counts) ** 2 > changes * _sum_of_inverses(counts)


def _sum_of_inverses(counts: Iterable[int]) -> float:
    return fsum(1.0 / count for count in counts)  # rounded once, so that three thirds are one


def make_malenia(tickets: int, work: Work, rate: Any) -> Malenia:
    """As it is made by name: S is the number of tickets."""
    return Malenia(changes_per_step=tickets, work=work)


add_algorithm(
    Algorithm(
        name="malenia",
        summary="Malenia SGD: everybody computes at the present model until their counts' harmonic mean exceeds J/n",
        make=make_malenia,
        family="time-optimal",
        year=2023,
        timing="semi-synchronous",
        data="any",
        server_memory="S",
        evidence="text and code",
        optimum=True,
    ),
    __name__,
)
