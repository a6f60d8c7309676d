"""AsyncFedED: staleness measured by how far the model has moved, against the length of the change that arrives.

Paper: Wang, Yang, He, Shi & Chen, "AsyncFedED: Asynchronous Federated Learning with Euclidean Distance based Adaptive
Weight Aggregation", 2022.

Rule:

    on arrival:  gamma = |x - w_base| / |D_i|,  D_i = w_i - w_base;     x = x + lam / (gamma + eps) D_i
    then:        K_i = max(1, K_i + floor((gamma_target - gamma) kappa))     the local steps of the client's next ticket

A client whose change is short against what others moved meanwhile counts less, and gets fewer steps, so that it reports
sooner. gamma of a change of zero is taken as infinite, or 0 if the model has not moved either.

State: a number per client, K_i, at the server; the model of each ticket, which it keeps anyway. Bytes beyond the model:
a number down.

When to use it: delays vary, and versions are a poor measure of them, because merges differ much in length. lam, eps,
gamma_target and kappa have to be tuned together: a fresh change counts lam / eps. By name eps = 1 and lam = 2/J, at
most 1, where J tickets are out: while all changes are alike, gamma is then about 1, and each counts 1/J.

What goes wrong elsewhere: a public class of this name weighs by 1 / (t - version), which is not it.

Confirmed: that staleness is this distance, and that local epochs count, by the paper's abstract and a later paper's;
the formulas rest on memory, as does that K_i counts mini-batch steps here, not epochs. Nothing was found of the paper's
values. The upper bound `max_steps` is ours, and off.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, inf
from typing import Any, ClassVar

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, field, replace
from asyncfed.core.types import Action, Schedule, Train, Update, Work
from asyncfed.registry import register
from asyncfed.rules.moved_since import MovedSince
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import (
    DispatchPolicy,
    KeepBusy,
    RoundState,
    check_positive,
    draw_tickets,
    merge_on_arrival,
)
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate

NOT_YET = 0
"""In place of K_i, for a client that has not reported."""


class StepsState(RoundState):
    """K_i, the local steps of each client's next ticket."""

    steps: list[int] = field(default_factory=list)


@register("strategy")
class AsyncFedED(KeepBusy, Config, tag_field="kind", tag="asyncfeded"):
    """AsyncFedED: x = x + server_lr / (gamma + eps) (w_i - w_base), gamma = |x - w_base| / |w_i - w_base|.

        the client's next ticket has max(1, K + floor((gamma_target - gamma) step_gain)) steps, K those of this one

    A client's first ticket has as many steps as `work` means for it. A round is `concurrency` merged updates.

    Args:
        concurrency: tickets out at once, 1 or more.
        server_lr: lam, above 0.
        eps: above 0; a fresh change counts server_lr / eps.
        gamma_target: the gamma at which a client's steps stay as they are, 0 or more.
        step_gain: kappa, how many steps a difference of 1 from the target adds or takes, 0 (none) or more.
        max_steps: the most steps of a ticket, 1 or more; None for no bound, as in the paper.
        sampler: which clients get the next tickets.
        work: what each client is asked to do.
        schedule: how the learning rate follows the rounds.

    >>> AsyncFedED(eps=0.5).weight(moved_norm=3.0, change_norm=2.0)
    0.5

    Wang et al., "AsyncFedED: Asynchronous Federated Learning with Euclidean Distance based Adaptive Weight
    Aggregation", 2022.
    """

    concurrency: int = 5
    server_lr: float = 1.0
    eps: float = 1.0
    gamma_target: float = 1.0
    step_gain: float = 1.0
    max_steps: int | None = None
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = StepsState

    def __post_init__(self) -> None:
        check_positive("server_lr", self.server_lr)
        check_positive("eps", self.eps)
        for name in ("gamma_target", "step_gain"):
            if not 0 <= getattr(self, name) < inf:
                raise ConfigError(f"strategy.{name} is {getattr(self, name)}; it must be zero or a positive number.")
        if self.max_steps is not None and self.max_steps < 1:
            raise ConfigError(f"strategy.max_steps is {self.max_steps}; a ticket has at least 1 step.")

    @property
    def rule(self) -> MovedSince:
        """What measures arrivals."""
        return MovedSince()

    @property
    def dispatch(self) -> DispatchPolicy:
        """How this strategy dispatches: clients that lag make fewer steps, so how long they take changes."""
        return DispatchPolicy("keep_busy", self.concurrency, predictable=False)

    def weight(self, moved_norm: float, change_norm: float) -> float:
        """What a change of this length counts, if the model has moved so far since its start."""
        return self.server_lr / (_gamma(moved_norm, change_norm) + self.eps)

    def next_steps(self, steps: int, moved_norm: float, change_norm: float) -> int:
        """The local steps of a client's next ticket, after one with so many."""
        gamma, most = _gamma(moved_norm, change_norm), inf if self.max_steps is None else self.max_steps
        if gamma == inf:
            return 1 if self.step_gain else steps
        return int(max(1, min(most, steps + floor((self.gamma_target - gamma) * self.step_gain))))

    def on_update(self, state: StepsState, update: Update, view: View) -> tuple[StepsState, Sequence[Action]]:
        """Add the change, and set how many steps its client makes next."""
        metrics, report = update.report.metrics or {}, update.report
        lengths = metrics["moved_norm"], metrics["change_norm"]
        merge, after = merge_on_arrival(state, report.ticket, self.weight(*lengths), self.concurrency)
        steps = state.steps
        steps.extend([NOT_YET] * (report.client + 1 - len(steps)))
        made = update.dispatch.work.count_steps(report.num_examples)
        steps[report.client] = self.next_steps(max(1, made), *lengths)
        return self.refill(StepsState(after.sampling, after.merged_this_round, steps), view, [merge])

    def refill(self, state: Any, view: View, actions: list[Action], held: int = 0) -> tuple[Any, Sequence[Action]]:
        """As many tickets as are missing, each with its client's own number of steps."""
        missing = self.concurrency - view.in_flight - held
        trains, sampling = draw_tickets(missing, self.sampler, state.sampling, view, self.work, self.schedule)
        for train in trains:
            steps = state.steps[train.client] if train.client < len(state.steps) else NOT_YET
            work = self.work if steps == NOT_YET else replace(self.work, steps=steps)
            actions.append(Train(train.client, work, self.schedule))
        return replace(state, sampling=sampling), actions


def _gamma(moved_norm: float, change_norm: float) -> float:
    if change_norm > 0.0:
        return moved_norm / change_norm
    return inf if moved_norm > 0.0 else 0.0


add_algorithm(
    Algorithm(
        name="asyncfeded",
        summary="AsyncFedED: staleness is how far the model has moved; clients that lag make fewer steps",
        make=lambda tickets, work, rate: AsyncFedED(concurrency=tickets, server_lr=min(1.0, 2.0 / tickets), work=work),
        family="staleness",
        year=2022,
        timing="asynchronous",
        data="similar",
        extra_down="a number",
        evidence="memory",
        metrics=("moved_norm", "change_norm"),
    ),
    __name__,
)
