"""FedAsync: mix every arrival, the less the staler it is.

Xie, Koyejo & Gupta, "Asynchronous Federated Optimization", OPT 2020:

    x = (1 - a) x + a w_i,     a = mixing * s(staleness)

with s constant, polynomial `(1 + tau)^-p`, or hinge: 1 up to `grace`, then `1 / (slope (tau - grace) + 1)`. The
discount applies to this arrival only; it does not compound. The paper's local proximal term is `work.proximal`.

With `weighting = "inverse_participation"` (not in the paper) a is also multiplied by the factor of
`strategies/participation.py`, and is at most 1: fast clients count less each time, slow ones more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from asyncfed.core.record import Config, Record
from asyncfed.core.types import Action, Dispatch, Merge, Update, View, Work
from asyncfed.strategies.discounts import Discount, Polynomial
from asyncfed.strategies.dispatch import check_between, check_crowd, hand_out
from asyncfed.strategies.participation_weights import Counts, counted, participation_factor
from asyncfed.strategies.samplers import Sampler, SamplerMemory, UniformIdle
from asyncfed.strategies.schedules import ConstantRate, RateSchedule


class State(Record):
    sampling: SamplerMemory = None
    merged_this_round: int = 0
    merges: Counts = ()


class FedAsync(Config, tag_field="kind", tag="fedasync"):
    concurrency: int = 5
    mixing: float = 0.6
    discount: Discount = Polynomial(power=0.5)
    weighting: Literal["equal", "inverse_participation"] = "equal"
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: RateSchedule = ConstantRate()

    def __post_init__(self) -> None:
        check_between("mixing", self.mixing, 0.0, 1.0)

    @property
    def state_type(self) -> type[State]:
        return State

    def check(self, num_clients: int) -> None:
        check_crowd("concurrency", self.concurrency, self.sampler, self.work.start, num_clients)

    def start(self, view: View) -> tuple[State, Sequence[Action]]:
        return self._refilled(State(self.sampler.start()), view, [])

    def on_update(self, state: State, update: Update, view: View) -> tuple[State, Sequence[Action]]:
        weight, merges, client = (
            self.mixing * self.discount.weight(update.staleness),
            state.merges,
            update.report.client,
        )
        if self.weighting == "inverse_participation":
            weight = min(1.0, weight * participation_factor(merges, client, len(view.clients)))
            merges = counted(merges, client)
        count = state.merged_this_round + 1
        ends_round = count >= self.concurrency
        merge = Merge((update.report.ticket,), (weight,), 1.0 - weight, "model", None, ends_round)
        return self._refilled(State(state.sampling, 0 if ends_round else count, merges), view, [merge])

    def on_lost(self, state: State, dispatch: Dispatch, view: View) -> tuple[State, Sequence[Action]]:
        return self._refilled(state, view, [])

    def on_join(self, state: State, client: int, view: View) -> tuple[State, Sequence[Action]]:
        return self._refilled(state, view, [])

    def on_leave(self, state: State, client: int, view: View) -> tuple[State, Sequence[Action]]:
        return state, []

    def _refilled(self, state: State, view: View, actions: list[Action]) -> tuple[State, Sequence[Action]]:
        free = self.concurrency - view.in_flight
        trains, sampling = hand_out(free, self.sampler, state.sampling, view, self.work, self.schedule)
        return State(sampling, state.merged_this_round, state.merges), [*actions, *trains]
