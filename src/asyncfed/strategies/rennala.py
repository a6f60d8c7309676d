"""Rennala SGD: the first S changes computed at the present model make a step; all other work is stopped.

Paper: Tyurin & Richtárik, "Optimal Time Complexities of Parallel Stochastic Optimization Methods Under a Fixed
Computation Model", NeurIPS 2023, Method 4.

Rule:

    everybody computes at x^k, and who has finished computes again at x^k, until S changes are there
    x^{k+1} = x^k + server_lr (1/S) sum of these S changes;     all tickets that are out are cancelled and begun anew

State: the S changes wait at the server until the step; their sum would do. Bytes beyond the model: none.

When to use it: all clients have the same data, or samples of the same distribution, and their speeds differ. With
S = max(1, ceil(sigma^2 / epsilon)) no method is faster than a constant factor, if speeds are constant; a client that is
much slower than the rest is never waited for. With data that differ between clients it converges to the optimum of
the fast ones: then use `malenia` or `ringleader`. Work of more than one step is our generalisation.

What goes wrong elsewhere: changes of an older model are counted, so that staleness is no longer 0; the sum is divided
by the number of workers instead of S; workers that have finished wait for the step, which makes it a minibatch method.

Confirmed: rule and limits by the survey's Algorithm 1 (Tyurin et al. 2026) and public code of the authors' group, as
the algorithm sheet of this project records them. S and the step 1/(2L) of the theorem rest on memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record
from asyncfed.core.types import Action, Merge, Schedule, Update, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.all_at_work import AllAtWork
from asyncfed.strategies.dispatch import RuledStrategy, check_positive
from asyncfed.strategies.protocol import View
from asyncfed.strategies.schedules import ConstantRate


class BatchState(Record):
    """The tickets of the present batch, in the order of arrival."""

    tickets: tuple[int, ...] = ()


@register("strategy")
class Rennala(AllAtWork, RuledStrategy, tag_field="kind", tag="rennala"):
    """Rennala SGD: x = x + (server_lr / S) sum of the first S changes computed at x; staleness is always 0.

    Everybody is at work. A round is one step. A change counts even if its client leaves before the step. See the head
    of the module for the whole algorithm.

    Args:
        changes_per_step: S, 1 or more. The paper's choice is max(1, ceil(sigma^2 / epsilon)), sigma^2 being the
            variance of a stochastic gradient and epsilon the squared norm of the gradient to be reached.
        server_lr: the server's step along the mean, above 0.
        work: what each client is asked to do; the paper's is one step.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the sum above.

    >>> Rennala(changes_per_step=0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.changes_per_step is 0; a step needs at least 1 change.
    """

    changes_per_step: int = 5
    server_lr: float = 1.0
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Record]] = BatchState

    def __post_init__(self) -> None:
        check_changes_per_step(self.changes_per_step)
        check_positive("server_lr", self.server_lr)

    @property
    def merges_several(self) -> bool:
        """Whether a step needs more than one change."""
        return self.changes_per_step > 1

    def on_update(self, state: BatchState, update: Update, view: View) -> tuple[BatchState, Sequence[Action]]:
        """Collect the change; with the last of the batch, step, and let everybody begin anew."""
        tickets, size = (*state.tickets, update.report.ticket), self.changes_per_step
        if len(tickets) < size:
            return BatchState(tickets), [self.train(update.report.client)]
        merge = Merge(tickets, (self.server_lr / size,) * size, keep=1.0, of="delta", ends_round=True)
        return BatchState(), [merge, *self.begin_anew(view, "the batch is full without it")]


def check_changes_per_step(changes: int) -> None:
    """Refuse S below 1."""
    if changes < 1:
        raise ConfigError(f"strategy.changes_per_step is {changes}; a step needs at least 1 change.")


def make_rennala(tickets: int, work: Work, rate: Any) -> Rennala:
    """As it is made by name: S is the number of tickets."""
    return Rennala(changes_per_step=tickets, work=work)


add_algorithm(
    Algorithm(
        name="rennala",
        summary="Rennala SGD: the first J changes computed at the present model make a step, the rest is stopped",
        make=make_rennala,
        family="time-optimal",
        year=2023,
        timing="semi-synchronous",
        data="the same",
        server_memory="S",
        certificate="yes",
        evidence="text and code",
    ),
    __name__,
)
