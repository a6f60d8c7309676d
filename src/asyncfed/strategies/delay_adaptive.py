"""Delay-adaptive asynchronous SGD: a change that is staler than the number of clients at work counts less, or nothing.

Paper: Koloskova, Stich & Jaggi, "Sharper Convergence Guarantees for Asynchronous SGD for Distributed and Federated
Learning", NeurIPS 2022, theorem 8 (`delay_adaptive`); Mishchenko, Bach, Even & Woodworth, "Asynchronous SGD Beats
Minibatch SGD Under Arbitrary Delays", NeurIPS 2022 (`delay_adaptive_mishchenko`).

Rule:

    on arrival, delay tau:    x = x + eta_t (w_i - w_base)
    eta_t = eta                                      if tau <= tau_C, the number of tickets out at once
    Koloskova:   any value in [0, min(eta, 1/(4 L tau)))     if tau > tau_C; 0 drops the change
    Mishchenko:  eta M / max(M, tau)                 M the number of workers, each of which goes on by itself

`delay_adaptive` takes eta tau_C / tau beyond tau_C, which needs no smoothness L and is inside Koloskova's interval if
eta <= 1/(4 L tau_C); settings choose the theorem's limit or dropping instead. The formula is then Mishchenko's with
M = tau_C. The two names differ in who works: here the next client is drawn; there M workers are drawn once, and whoever
reports gets the new model itself. By name server_lr, what a change counts in full, is 1 / (tickets out at once), as for
`async_sgd`: eta is then the local rate divided by tau_C, as the condition above asks.

State: none. Bytes beyond the model: none.

When to use it: asynchronous SGD with the same data everywhere (samples of one distribution) and a few clients that are
very late: the rate then depends on how many work at once, not on the largest delay. With data that differ between
clients it converges to the wrong objective: late clients count less, however small the step.

What goes wrong elsewhere: the delay counted from 1; eta tau_C / tau used with eta so large that the theorem does not
hold; the delay of a client's report counted from its last report instead of from its download, which is the same only
if each client works without pause.

Confirmed: Koloskova's interval by the paper's text (theorem 8), as is that heterogeneous clients are outside it.
Mishchenko's step by the authors' code (lr * workers / max(workers, delay)), which sends a worker the model from before
its own last step; here it gets the one after it. The constants of Mishchenko's theorems were not read again and are not
used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, UnsetType
from asyncfed.core.types import Action, Dispatch, Drop, Schedule, Train, Update, Work
from asyncfed.registry import register
from asyncfed.rules.local_rates import sum_of_rates
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.arrival_rule import ArrivalRule
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
from asyncfed.strategies.wrapping import ViewWithout


@register("strategy")
class DelayAdaptive(KeepBusy, RuledStrategy, tag_field="kind", tag="delay_adaptive"):
    """Delay-adaptive asynchronous SGD: x = x + eta_t (w_i - w_base), eta_t = server_lr up to a staleness of tau_C.

        beyond tau_C:   shrink    eta_t = server_lr tau_C / tau
                        theorem   eta_t = min(server_lr, 1 / (4 L tau rates))    rates: the sum of the local rates
                        drop      the change is dropped

    The paper's step on a gradient is eta_t times the client's rate; clients make one step. With several, `rates` stands
    for it, which is beyond the theorem. A round is `concurrency` merged updates.

    Args:
        concurrency: tickets out at once, 1 or more.
        staleness_threshold: tau_C, in versions, 1 or more; left out, `concurrency`.
        beyond: what a staler change counts: "shrink", "theorem" (Koloskova's upper limit) or "drop".
        smoothness: L, above 0; for "theorem" only, which needs it.
        next_client: who gets the next ticket: "drawn" by the sampler, or the "same" client that has just reported. Then
            the sampler draws the first `concurrency` clients and replaces those that leave; nobody else ever works.
        server_lr: eta, what a change counts, above 0.
        sampler: which clients get the next tickets.
        work: what each client is asked to do; the papers' is one step.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the sum above.

    >>> DelayAdaptive(concurrency=4).weight(staleness=8, rates=0.01)
    0.5

    Koloskova, Stich & Jaggi, "Sharper Convergence Guarantees for Asynchronous SGD for Distributed and Federated
    Learning", NeurIPS 2022.
    """

    concurrency: int = 5
    staleness_threshold: int | UnsetType = UNSET
    beyond: Literal["shrink", "theorem", "drop"] = "shrink"
    smoothness: float | UnsetType = UNSET
    next_client: Literal["drawn", "same"] = "drawn"
    server_lr: float = 1.0
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = RoundState
    any_population: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("server_lr", self.server_lr)
        if self.staleness_threshold is not UNSET and self.staleness_threshold < 1:
            raise ConfigError(
                f"strategy.staleness_threshold is {self.staleness_threshold}; it must be at least 1 version, or left "
                "out for `concurrency`."
            )
        if (self.beyond == "theorem") != (self.smoothness is not UNSET):
            raise ConfigError(
                f'strategy.beyond is "{self.beyond}" and strategy.smoothness is '
                f"{'left out' if self.smoothness is UNSET else self.smoothness}; the smoothness L belongs to "
                '"theorem", which needs it. Set both, or leave smoothness out.'
            )
        if self.smoothness is not UNSET:
            check_positive("smoothness", self.smoothness)

    @property
    def dispatch(self) -> DispatchPolicy:
        """How this strategy dispatches."""
        predictable = self.next_client == "drawn" and self.beyond != "drop"
        return DispatchPolicy("keep_busy", self.concurrency, predictable=predictable)

    @property
    def threshold(self) -> int:
        """tau_C, up to which a change counts in full."""
        return self.concurrency if self.staleness_threshold is UNSET else self.staleness_threshold

    def weight(self, staleness: int, rates: float) -> float:
        """What a change of this staleness counts, 0 if it is dropped; `rates` is the sum of its local steps' rates."""
        if staleness <= self.threshold:
            return self.server_lr
        if self.beyond == "drop":
            return 0.0
        if self.smoothness is UNSET:
            return self.server_lr * self.threshold / staleness
        return min(self.server_lr, 1.0 / (4.0 * self.smoothness * staleness * rates)) if rates > 0 else self.server_lr

    def on_update(self, state: RoundState, update: Update, view: View) -> tuple[RoundState, Sequence[Action]]:
        """Add the change, with the weight that its staleness leaves it."""
        ticket, work, examples = update.report.ticket, update.dispatch.work, update.report.num_examples
        rates = sum_of_rates(work, work.count_steps(examples), examples)
        weight = self.weight(update.staleness, rates)
        actions: list[Action]
        if weight:
            merge, state = merge_on_arrival(state, ticket, weight, self.concurrency)
            actions = [merge]
        else:
            actions = [Drop(ticket, f"staleness {update.staleness} is above the threshold {self.threshold}")]
        return self._go_on(state, update.report.client, view, actions)

    def on_lost(self, state: RoundState, dispatch: Dispatch, view: View) -> tuple[RoundState, Sequence[Action]]:
        """A new ticket in place of the lost one."""
        return self._go_on(state, dispatch.client, view, [])

    def _go_on(
        self, state: RoundState, client: int, view: View, actions: list[Action]
    ) -> tuple[RoundState, Sequence[Action]]:
        """The next tickets, the first of them for this client if it is to go on itself and is still here."""
        if self.next_client == "drawn" or client not in view.clients:
            return self.refill(state, view, actions)
        actions.append(Train(client, self.work, self.schedule))
        return self.refill(state, ViewWithout(view, client), actions, held=1)

    def arrival_rule(self, view: View) -> ArrivalRule | None:
        """What `on_update` does, if it follows from the staleness alone."""
        if not self.may_decide_ahead or self.beyond != "shrink" or self.next_client != "drawn":
            return None
        return ArrivalRule("add", self.concurrency, lambda staleness: self.weight(staleness, rates=0.0))


for _name, _next, _words in (
    ("delay_adaptive", "drawn", "delay-adaptive SGD (Koloskova): what is staler than J versions counts J/staleness"),
    ("delay_adaptive_mishchenko", "same", "delay-adaptive SGD (Mishchenko): the same step, J workers that never pause"),
):
    add_algorithm(
        Algorithm(
            name=_name,
            summary=_words,
            make=lambda tickets, work, rate, next_client=_next: DelayAdaptive(  # type: ignore[misc]
                concurrency=tickets, next_client=next_client, server_lr=1.0 / tickets, work=work
            ),
            family="staleness",
            year=2022,
            timing="asynchronous",
            data="the same",
            evidence="text" if _next == "drawn" else "code",
        ),
        __name__,
    )
