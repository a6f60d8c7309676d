"""Aggregation every T seconds: whoever has arrived by then is merged, and nobody is waited for.

Paper: Fraboni, Vidal, Kameni & Lorenzi, "A General Theory for Federated Optimization with Asynchronous and
Heterogeneous Clients Updates", JMLR 2023, whose FedFix merges at fixed intervals; the discount is FedBuff's, the use of
changes ours.

Rule: at each multiple of T at which k > 0 reports have arrived since the last,

    x = x + (server_lr / k) sum_i s(tau_i) (w_i - w_base,i)

and those that reported get the new model (or, with `restart = "at_once"`, got the present one when they reported). The
others go on working. If nothing arrived, there is no new version. With T below any gap between arrivals it is
asynchronous SGD; with T the duration that all clients have, FedAvg with equal weights. T left out is the mean of the
first durations: the first merge then waits for as many reports as there are tickets.

State: the updates that have arrived since the last merge. Bytes beyond the model: none.

When to use it: results are wanted at known times, by people or by another system; or the server can do no more than a
merge every T seconds.

What goes wrong elsewhere: empty intervals that raise the version, so that staleness grows without any change; updates
averaged as models, which pulls the model back to what slow clients started from.

Confirmed: the abstract of the paper was read; its own weights, which make up for how often clients report, are not used
here. The rest is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import Any, ClassVar, Literal, TypeAlias

from asyncfed.core.record import UNSET, UnsetType, replace
from asyncfed.core.types import Action, Dispatch, Merge, Schedule, Update, Wake, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.discounts import Discount, Polynomial
from asyncfed.strategies.dispatch import DispatchPolicy, KeepBusy, RuledStrategy, SamplerState, check_positive
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.strategies.some_clients import ViewOf

ROUNDING = 1e-9
"""What arrives by so small a part of a period after its end belongs to it: sums of durations are rounded."""


class PeriodicState(SamplerState):
    """The updates that wait, whose they are and the versions they began from; T, where its periods are counted from,
    and how many of them were over at the last merge.

    While T is not known it is 0, and `seconds` is the sum of the durations so far.
    """

    tickets: tuple[int, ...] = ()
    clients: tuple[int, ...] = ()
    bases: tuple[int, ...] = ()
    period: float = 0.0
    origin: float = 0.0
    over: int = 0
    seconds: float = 0.0


Decision: TypeAlias = tuple[PeriodicState, Sequence[Action]]


@register("strategy")
class Periodic(KeepBusy, RuledStrategy, tag_field="kind", tag="periodic"):
    """Every T seconds, x = x + (server_lr / k) sum_i s(tau_i) (w_i - w_base,i) over the k reports that have arrived.

    Staleness tau_i is counted at the merge. A round is one merge.

    Args:
        concurrency: tickets out at once, 1 or more; a report that waits for its merge keeps its place.
        period: T in seconds of the run's clock, above 0; left out, the mean duration of the first `concurrency`
            reports, which are merged together.
        restart: when a client that has reported may get another ticket: "at_merge", from the merged model; or
            "at_once", from the present one.
        server_lr: the server's step along the mean, above 0.
        discount: s, what an update counts by its staleness.
        sampler: which clients get the next tickets.
        work: what each client is asked to do.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the sum above.

    >>> Periodic(period=0.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.period is 0.0; it must be a positive number.

    Fraboni et al., "A General Theory for Federated Optimization with Asynchronous and Heterogeneous Clients Updates",
    JMLR 2023.
    """

    concurrency: int = 5
    period: float | UnsetType = UNSET
    restart: Literal["at_merge", "at_once"] = "at_merge"
    server_lr: float = 1.0
    discount: Discount = Polynomial(power=0.5)
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = PeriodicState
    single_updates = "what has arrived when its interval ends may be a single update"

    def __post_init__(self) -> None:
        check_positive("server_lr", self.server_lr)
        if self.period is not UNSET:
            check_positive("period", self.period)

    @property
    def dispatch(self) -> DispatchPolicy:
        """Tickets are replaced when their reports are merged: how many that is depends on the delays."""
        return DispatchPolicy("other", self.concurrency)

    def start(self, view: View) -> Decision:
        """The first tickets."""
        period = 0.0 if self.period is UNSET else self.period
        return self._refill(PeriodicState(self.sampler.start(), period=period), view, [])

    def on_update(self, state: PeriodicState, update: Update, view: View) -> Decision:
        """Keep the update; the first of a period sets the timer of its end."""
        report, actions = update.report, list[Action]()
        state = replace(
            state,
            tickets=(*state.tickets, report.ticket),
            clients=(*state.clients, report.client),
            bases=(*state.bases, update.dispatch.base_version),
            seconds=state.seconds + report.duration,
        )
        if not state.period:
            return self._learn_period(state, view, report.arrived_at)
        if len(state.tickets) == 1:
            since = report.arrived_at - state.origin
            periods = max(state.over + 1, ceil(since / state.period - ROUNDING))
            actions.append(Wake(max(0.0, periods * state.period - since)))
        return self._refill(state, view, actions)

    def on_lost(self, state: PeriodicState, dispatch: Dispatch, view: View) -> Decision:
        """A new ticket in place of the lost one; if nobody is left to work, the first merge need not wait."""
        after, actions = self._refill(state, view, [])
        if not actions and not view.in_flight and not state.period and state.tickets:
            return after, [Wake(0.0)]
        return after, actions

    def on_join(self, state: PeriodicState, client: int, view: View) -> Decision:
        """More tickets, if there were not clients enough."""
        return self._refill(state, view, [])

    def on_wake(self, state: PeriodicState, number: int, now: float, view: View) -> Decision:
        """The end of a period in which something arrived."""
        return self._merge(state, view, now) if state.tickets else (state, ())

    def _learn_period(self, state: PeriodicState, view: View, now: float) -> Decision:
        """T is the mean of the durations of the first merge, which comes when all tickets are back."""
        if len(state.tickets) >= self.concurrency or (not view.in_flight and len(state.tickets) >= len(view.clients)):
            return self._merge(state, view, now)
        return self._refill(state, view, [])

    def _merge(self, state: PeriodicState, view: View, now: float) -> Decision:
        count = len(state.tickets)
        share = self.server_lr / count
        weights = tuple([share * self.discount.weight(view.version - base) for base in state.bases])
        merge = Merge(state.tickets, weights, keep=1.0, of="delta", ends_round=True)
        if state.period:
            state = replace(state, over=floor((now - state.origin) / state.period + ROUNDING))
        else:  # durations of 0 s have no mean to go by: then everything is merged as soon as it arrives
            state = replace(state, period=max(state.seconds / count, 1e-9), origin=now)
        return self._refill(replace(state, tickets=(), clients=(), bases=()), view, [merge])

    def _refill(self, state: PeriodicState, view: View, actions: list[Action]) -> Decision:
        """The tickets that are missing; not for clients that wait for the merge, if they have to."""
        if self.restart == "at_once" or not state.tickets:
            return self._dispatch_missing(state, view, actions, 0)
        if self.concurrency - view.in_flight - len(state.tickets) <= 0:
            return state, actions
        others: Any = ViewOf(view, set(view.clients).difference(state.clients))
        return self._dispatch_missing(state, others, actions, len(state.tickets))

    def _dispatch_missing(self, state: PeriodicState, view: View, actions: list[Action], held: int) -> Decision:
        decision: Decision = self.refill(state, view, actions, held)
        return decision


add_algorithm(
    Algorithm(
        name="periodic",
        summary="every T seconds all that arrived is merged, discounted by staleness; T from the first durations",
        make=lambda tickets, work, rate: Periodic(concurrency=tickets, work=work),
        family="semi-synchronous",
        year=2022,
        timing="semi-synchronous",
        data="similar",
        server_memory="K",
        evidence="ours",
    ),
    __name__,
)
