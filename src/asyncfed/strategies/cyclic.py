"""Cyclic Weight Transfer: one client at a time, each starting from the previous client's result.

Chang et al., "Distributed deep learning networks among institutions for medical imaging", JAMIA 2018:

    x = w_i      the next client in a shuffled cycle then starts from x

A round is `round_length` hand-overs; by default as many as there are clients, that is, one cycle.
"""

from __future__ import annotations

from collections.abc import Sequence

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, Record
from asyncfed.core.types import Action, Dispatch, Merge, Update, View, Work
from asyncfed.strategies.dispatch import hand_out
from asyncfed.strategies.samplers import Sampler, SamplerMemory, ShuffledCycle
from asyncfed.strategies.schedules import ConstantRate, RateSchedule


class State(Record):
    sampling: SamplerMemory = None
    merged_this_round: int = 0


class CyclicWeightTransfer(Config, tag_field="kind", tag="cyclic_weight_transfer"):
    round_length: int | None = None
    sampler: Sampler = ShuffledCycle()
    work: Work = Work()
    schedule: RateSchedule = ConstantRate()

    def __post_init__(self) -> None:
        if self.round_length is not None and self.round_length < 1:
            raise ConfigError(f"strategy.round_length is {self.round_length}; a round has at least 1 hand-over.")

    @property
    def state_type(self) -> type[State]:
        return State

    def check(self, num_clients: int) -> None:
        """One client at a time fits any number of clients."""

    def start(self, view: View) -> tuple[State, Sequence[Action]]:
        return self._pass_on(State(self.sampler.start()), view, [])

    def on_update(self, state: State, update: Update, view: View) -> tuple[State, Sequence[Action]]:
        count = state.merged_this_round + 1
        ends_round = count >= (self.round_length or len(view.clients))
        merge = Merge((update.report.ticket,), (1.0,), 0.0, "model", None, ends_round)
        return self._pass_on(State(state.sampling, 0 if ends_round else count), view, [merge])

    def on_lost(self, state: State, dispatch: Dispatch, view: View) -> tuple[State, Sequence[Action]]:
        return self._pass_on(state, view, [])

    def on_join(self, state: State, client: int, view: View) -> tuple[State, Sequence[Action]]:
        return self._pass_on(state, view, [])

    def on_leave(self, state: State, client: int, view: View) -> tuple[State, Sequence[Action]]:
        return state, []

    def _pass_on(self, state: State, view: View, actions: list[Action]) -> tuple[State, Sequence[Action]]:
        trains, sampling = hand_out(1 - view.in_flight, self.sampler, state.sampling, view, self.work, self.schedule)
        return State(sampling, state.merged_this_round), [*actions, *trains]
