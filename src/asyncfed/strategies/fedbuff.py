"""FedBuff: collect K arrivals, then take one step along their discounted mean.

Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation", AISTATS 2022:

    every K arrivals:  x = x + (server_lr / K) sum_i s(tau_i) (w_i - w_base,i),     s(tau) = 1 / sqrt(1 + tau)

The delta is taken against the model the client downloaded, and the sum is divided by K, the size of the buffer. A
round is one such step. Clients go on being handed tickets while the buffer fills.
"""

from __future__ import annotations

from collections.abc import Sequence

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, Record
from asyncfed.core.types import Action, Dispatch, Merge, Update, View, Work
from asyncfed.strategies.discounts import Discount, Polynomial
from asyncfed.strategies.dispatch import check_crowd, hand_out
from asyncfed.strategies.samplers import Sampler, SamplerMemory, UniformIdle
from asyncfed.strategies.schedules import ConstantRate, RateSchedule


class State(Record):
    sampling: SamplerMemory = None
    tickets: tuple[int, ...] = ()
    discounts: tuple[float, ...] = ()


class FedBuff(Config, tag_field="kind", tag="fedbuff"):
    concurrency: int = 5
    buffer_size: int = 10
    server_lr: float = 1.0
    discount: Discount = Polynomial(power=0.5)
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: RateSchedule = ConstantRate()

    def __post_init__(self) -> None:
        if not 0 < self.server_lr < float("inf"):
            raise ConfigError(f"strategy.server_lr is {self.server_lr}; it must be a positive number.")
        if self.buffer_size < 1:
            raise ConfigError(f"strategy.buffer_size is {self.buffer_size}; a buffer holds at least 1 update.")

    @property
    def state_type(self) -> type[State]:
        return State

    def check(self, num_clients: int) -> None:
        check_crowd("concurrency", self.concurrency, self.sampler, self.work.start, num_clients)

    def start(self, view: View) -> tuple[State, Sequence[Action]]:
        return self._refilled(State(self.sampler.start()), view, [])

    def on_update(self, state: State, update: Update, view: View) -> tuple[State, Sequence[Action]]:
        # A version passes only when the buffer is emptied, so staleness cannot grow while an update lies in it.
        tickets = (*state.tickets, update.report.ticket)
        discounts = (*state.discounts, self.discount.weight(update.staleness))
        if len(tickets) < self.buffer_size:
            return self._refilled(State(state.sampling, tickets, discounts), view, [])
        weights = tuple([self.server_lr / self.buffer_size * s for s in discounts])
        merge = Merge(tickets, weights, 1.0, "delta", None, ends_round=True)
        return self._refilled(State(state.sampling), view, [merge])

    def on_lost(self, state: State, dispatch: Dispatch, view: View) -> tuple[State, Sequence[Action]]:
        return self._refilled(state, view, [])

    def on_join(self, state: State, client: int, view: View) -> tuple[State, Sequence[Action]]:
        return self._refilled(state, view, [])

    def on_leave(self, state: State, client: int, view: View) -> tuple[State, Sequence[Action]]:
        return state, []

    def _refilled(self, state: State, view: View, actions: list[Action]) -> tuple[State, Sequence[Action]]:
        free = self.concurrency - view.in_flight
        trains, sampling = hand_out(free, self.sampler, state.sampling, view, self.work, self.schedule)
        return State(sampling, state.tickets, state.discounts), [*actions, *trains]
