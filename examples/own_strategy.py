"""A strategy of your own in one file: checked, run, and written to TOML like a shipped one.

    python examples/own_strategy.py

A server that merges on arrival merges fast clients more often, and so leans towards their data. This strategy counts
the updates of each client and lets an update weigh the more, the rarer its client:

    x = x + (1/J) min(largest, mean_c m_c / m_i) (w_i - w_base)      m_c the updates of client c, this one included

The clients' relations between features and target differ here, and two in ten clients are twenty times slower.
"""

from typing import ClassVar

import numpy as np

import asyncfed as af
from asyncfed.strategies import KeepBusy, SamplerState
from asyncfed.testing import check_strategy


class State(SamplerState):
    """What the strategy must remember between two arrivals. It goes in and comes out, so that it can be saved."""

    merges: tuple[tuple[int, int], ...] = ()  # (client, number of its updates)
    merged_this_round: int = 0


@af.register("strategy")
class Balanced(KeepBusy, af.Config, tag_field="kind", tag="balanced"):
    """A frozen value of settings. It sees who, how stale and how many; it never sees a vector.

    `KeepBusy` keeps `concurrency` tickets out; all that is left to say is what an update counts.
    """

    concurrency: int = 5
    largest: float = 20.0
    sampler: af.Sampler = af.UniformIdle()
    work: af.Work = af.Work()
    schedule: af.Schedule = af.ConstantRate()

    state_class: ClassVar[type] = State

    def on_update(self, state, update, view):
        client = update.report.client
        merges = dict(state.merges)
        merges[client] = merges.get(client, 0) + 1
        mean = sum(merges.values()) / max(1, len(view.clients))
        weight = min(self.largest, mean / merges[client]) / self.concurrency
        count = state.merged_this_round + 1
        ends_round = count == self.concurrency
        merge = af.Merge((update.report.ticket,), (weight,), keep=1.0, of="delta", ends_round=ends_round)
        after = State(state.sampling, tuple(merges.items()), 0 if ends_round else count)
        return self.refill(after, view, [merge])


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

described = af.to_toml(af.replace(base, strategy=rivals["balanced"]))
print("read back from TOML:", af.from_toml(described).strategy == rivals["balanced"])
