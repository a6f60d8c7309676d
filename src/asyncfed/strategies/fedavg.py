"""FedAvg and plain synchronous federated learning: barrier rounds.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017. Each round a
cohort of J clients starts from the same model; when all have reported (or are lost),

    x = sum_i n_i w_i / sum_i n_i      weighting = "samples", n_i the samples of client i
    x = (1/J) sum_i w_i                weighting = "equal", the paper's synchronous FL

With `work.proximal > 0` this is FedProx (Li et al., MLSys 2020): see `fedprox`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from asyncfed.core.record import Config, Record, replace
from asyncfed.core.types import Action, Dispatch, Merge, Update, View, Work
from asyncfed.strategies.dispatch import check_crowd, hand_out
from asyncfed.strategies.samplers import Sampler, SamplerMemory, UniformIdle
from asyncfed.strategies.schedules import ConstantRate, RateSchedule


class State(Record):
    sampling: SamplerMemory = None
    tickets: tuple[int, ...] = ()
    examples: tuple[int, ...] = ()


class FedAvg(Config, tag_field="kind", tag="fedavg"):
    cohort_size: int = 5
    weighting: Literal["equal", "samples"] = "samples"
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: RateSchedule = ConstantRate()

    @property
    def state_type(self) -> type[State]:
        return State

    def check(self, num_clients: int) -> None:
        check_crowd("cohort_size", self.cohort_size, self.sampler, self.work.start, num_clients)

    def start(self, view: View) -> tuple[State, Sequence[Action]]:
        return self._next_round(self.sampler.start(), view, [])

    def on_update(self, state: State, update: Update, view: View) -> tuple[State, Sequence[Action]]:
        report = update.report
        arrived = State(state.sampling, (*state.tickets, report.ticket), (*state.examples, report.num_examples))
        return self._close_if_complete(arrived, view)

    def on_lost(self, state: State, dispatch: Dispatch, view: View) -> tuple[State, Sequence[Action]]:
        return self._close_if_complete(state, view)

    def on_join(self, state: State, client: int, view: View) -> tuple[State, Sequence[Action]]:
        return self._close_if_complete(state, view)  # only starts something if everybody else was gone

    def on_leave(self, state: State, client: int, view: View) -> tuple[State, Sequence[Action]]:
        return state, []

    def _close_if_complete(self, state: State, view: View) -> tuple[State, Sequence[Action]]:
        if view.in_flight:
            return state, []
        return self._next_round(state.sampling, view, [self._merge(state)] if state.tickets else [])

    def _merge(self, state: State) -> Merge:
        by_samples = self.weighting == "samples" and any(state.examples)  # nobody has any: all count the same
        counts = state.examples if by_samples else (1,) * len(state.tickets)
        total = sum(counts)
        return Merge(state.tickets, tuple([n / total for n in counts]), 0.0, "model", None, ends_round=True)

    def _next_round(self, sampling: SamplerMemory, view: View, actions: list[Action]) -> tuple[State, Sequence[Action]]:
        trains, sampling = hand_out(self.cohort_size, self.sampler, sampling, view, self.work, self.schedule)
        return State(sampling), [*actions, *trains]


def fedprox(cohort_size: int = 5, proximal: float = 0.01, work: Work | None = None) -> FedAvg:
    """FedAvg whose clients minimise `F_c(w) + proximal/2 * |w - x|^2`. Any strategy takes `work.proximal` likewise."""
    return FedAvg(cohort_size=cohort_size, work=replace(work or Work(), proximal=proximal))
