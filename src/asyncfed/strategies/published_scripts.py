"""What the paper's published scripts do, which is not what the paper's text says.

Both modes are barrier rounds of J clients drawn without replacement, and no client ever downloads: each trains on from
its own model for ever, and the server only mixes what it is shown. Once the whole cohort has reported, in the order in
which it was drawn:

    mode "afl"    x = (x + w_i) / 2    for each of them in turn
    mode "sync"   x = (1/J) sum_i w_i

Without a `schedule`, the rate is the scripts': in mode "afl" it decays with the local epoch and the last round's delay
spread (`DelayAware`), in mode "sync" it is constant. Use it to reproduce the published curves; use `AFL` to run the
algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from asyncfed.core.record import Config, Record, replace
from asyncfed.core.types import Action, Dispatch, Merge, Update, View, Work
from asyncfed.strategies.dispatch import check_crowd, hand_out
from asyncfed.strategies.samplers import Sampler, SamplerMemory, UniformIdle
from asyncfed.strategies.schedules import ConstantRate, DelayAware, RateSchedule

RATE_OF_MODE: dict[str, RateSchedule] = {"afl": DelayAware(), "sync": ConstantRate()}


class State(Record):
    sampling: SamplerMemory = None
    tickets: tuple[int, ...] = ()


class PublishedScripts(Config, tag_field="kind", tag="published_scripts"):
    mode: Literal["afl", "sync"] = "afl"
    cohort_size: int = 5
    sampler: Sampler = UniformIdle()
    work: Work = Work(start="own")
    schedule: RateSchedule | None = None

    @property
    def state_type(self) -> type[State]:
        return State

    def check(self, num_clients: int) -> None:
        check_crowd("cohort_size", self.cohort_size, self.sampler, "own", num_clients)

    def start(self, view: View) -> tuple[State, Sequence[Action]]:
        return self._next_round(self.sampler.start(), view, [])

    def on_update(self, state: State, update: Update, view: View) -> tuple[State, Sequence[Action]]:
        return self._close_if_complete(State(state.sampling, (*state.tickets, update.report.ticket)), view)

    def on_lost(self, state: State, dispatch: Dispatch, view: View) -> tuple[State, Sequence[Action]]:
        return self._close_if_complete(state, view)

    def on_join(self, state: State, client: int, view: View) -> tuple[State, Sequence[Action]]:
        return self._close_if_complete(state, view)

    def on_leave(self, state: State, client: int, view: View) -> tuple[State, Sequence[Action]]:
        return state, []

    def _close_if_complete(self, state: State, view: View) -> tuple[State, Sequence[Action]]:
        if view.in_flight:
            return state, []
        return self._next_round(state.sampling, view, self._merges(state.tickets))

    def _merges(self, tickets: tuple[int, ...]) -> list[Action]:
        drawn = tuple(sorted(tickets))  # tickets are numbered in the order of the draw
        if self.mode == "sync":
            equal = (1.0 / max(1, len(drawn)),) * len(drawn)
            return [Merge(drawn, equal, 0.0, "model", None, ends_round=True)] if drawn else []
        return [Merge((t,), (0.5,), 0.5, "model", None, ends_round=t == drawn[-1]) for t in drawn]

    def _next_round(self, sampling: SamplerMemory, view: View, actions: list[Action]) -> tuple[State, Sequence[Action]]:
        work = self.work if self.work.start == "own" else replace(self.work, start="own")
        rate = self.schedule or RATE_OF_MODE[self.mode]
        trains, sampling = hand_out(self.cohort_size, self.sampler, sampling, view, work, rate)
        return State(sampling), [*actions, *trains]
