"""FedAsync: mix every arrival, the less the staler it is.

Xie, Koyejo & Gupta, "Asynchronous Federated Optimization", OPT 2020:

    x = (1 - a) x + a w_i,     a = mixing * s(staleness)

with s constant, polynomial `(1 + tau)^-p`, or hinge: 1 up to `grace`, then `1 / (slope (tau - grace) + 1)`. The
discount applies to this arrival only; it does not compound. The paper's local proximal term is `work.proximal`.
"""

from __future__ import annotations

from collections.abc import Sequence

from asyncfed.core.record import Config, Record
from asyncfed.core.sampling import Sampler, SamplerMemory, UniformIdle
from asyncfed.core.schedule import ConstantRate, RateSchedule
from asyncfed.core.staleness import Discount, Polynomial
from asyncfed.core.types import Action, Dispatch, Merge, Update, View, Work
from asyncfed.strategies.dispatching import check_between, check_crowd, hand_out


class State(Record):
    sampling: SamplerMemory = None
    merged_this_round: int = 0


class FedAsync(Config, tag_field="kind", tag="fedasync"):
    concurrency: int = 5
    mixing: float = 0.6
    discount: Discount = Polynomial(power=0.5)
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
        weight = self.mixing * self.discount.weight(update.staleness)
        count = state.merged_this_round + 1
        ends_round = count >= self.concurrency
        merge = Merge((update.report.ticket,), (weight,), 1.0 - weight, "model", None, ends_round)
        return self._refilled(State(state.sampling, 0 if ends_round else count), view, [merge])

    def on_lost(self, state: State, dispatch: Dispatch, view: View) -> tuple[State, Sequence[Action]]:
        return self._refilled(state, view, [])

    def on_join(self, state: State, client: int, view: View) -> tuple[State, Sequence[Action]]:
        return self._refilled(state, view, [])

    def on_leave(self, state: State, client: int, view: View) -> tuple[State, Sequence[Action]]:
        return state, []

    def _refilled(self, state: State, view: View, actions: list[Action]) -> tuple[State, Sequence[Action]]:
        free = self.concurrency - view.in_flight
        trains, sampling = hand_out(free, self.sampler, state.sampling, view, self.work, self.schedule)
        return State(sampling, state.merged_this_round), [*actions, *trains]
