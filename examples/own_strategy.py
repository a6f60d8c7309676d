"""A strategy of your own in one file, checked, and then run.

    python examples/own_strategy.py

A server that merges on arrival hears fast clients more often, and so leans towards their data. This strategy counts
whom it has heard and lets each arrival weigh the more, the rarer its client:

    x = x + (1/J) min(largest, mean_c m_c / m_i) (w_i - w_base)      m_c the updates of client c, this one included

The clients' relations between features and target differ here, and two in ten clients are twenty times slower.
"""

import numpy as np

import asyncfed as af
from asyncfed.core.record import Config, Record
from asyncfed.core.types import Merge, Train
from asyncfed.testing import check_strategy


class State(Record):
    """What the strategy must remember between two arrivals. It goes in and comes out, so that it can be saved."""

    merges: tuple[tuple[int, int], ...] = ()  # (client, number of its updates)
    merged_this_round: int = 0


class Balanced(Config):
    """A frozen value of settings. It sees who, how stale and how many; it never sees a vector."""

    concurrency: int = 5
    largest: float = 20.0
    work: af.Work = af.Work()

    @property
    def state_type(self):
        return State

    def check(self, num_clients):
        if not 1 <= self.concurrency <= num_clients:
            raise af.errors.ConfigError(
                f"concurrency is {self.concurrency}; it must be from 1 to the {num_clients} clients."
            )

    def start(self, view):
        return State(), self._refill(view)

    def on_update(self, state, update, view):
        client = update.report.client
        merges = dict(state.merges)
        merges[client] = merges.get(client, 0) + 1
        mean = sum(merges.values()) / max(1, len(view.clients))
        weight = min(self.largest, mean / merges[client]) / self.concurrency
        count = state.merged_this_round + 1
        ends_round = count == self.concurrency
        merge = Merge((update.report.ticket,), (weight,), keep=1.0, of="delta", ends_round=ends_round)
        return State(tuple(merges.items()), 0 if ends_round else count), [merge, *self._refill(view)]

    def on_lost(self, state, dispatch, view):
        return state, self._refill(view)

    def on_join(self, state, client, view):
        return state, self._refill(view)

    def on_leave(self, state, client, view):
        return state, []

    def _refill(self, view):
        idle = [view.idle[i] for i in range(len(view.idle))]
        view.rng.shuffle(idle)
        return [Train(client, self.work) for client in idle[: max(0, self.concurrency - view.in_flight)]]


check_strategy(Balanced(concurrency=3))
print("check_strategy: passed")

work = af.Work(epochs=1, batch_size=32, learning_rate=0.002)
base = af.replace(
    af.presets.regression(delays=af.delays.stragglers(share=0.2, slowness=20.0), rounds=300),
    split=af.data.ConceptShift(fraction=0.5, strength=0.5),
)
rivals = {
    "mean of deltas": af.strategies.AFL(concurrency=5, aggregate="delta_mean", work=work, schedule=af.ConstantRate()),
    "balanced": Balanced(concurrency=5, work=work),
}
comparison = af.compare(base, rivals, seeds=range(6), workers=1)
for name in rivals:
    final = [run.evaluations["distance"][-100:].mean() for run in comparison.runs[name].values()]
    print(f"{name:15} distance to the optimum, last 100 rounds of {len(final)} seeds: {np.mean(final):.2f}")
