"""A preparing rule changes what the wrapped rule sees; each has its own part of the memory."""

import numpy as np

from asyncfed.core.record import Config
from asyncfed.core.types import Merge, Work
from asyncfed.rules import Arrival, Mean, Momentum, Optimised, ServerRule
from asyncfed.rules.preparing import PreparingRule


class Doubling(PreparingRule, Config, tag_field="kind", tag="doubling_for_tests"):
    """Doubles every change, and counts them."""

    rule: ServerRule = Mean()

    def init(self, params, num_clients):
        return {**super().init(params, num_clients), "m": np.zeros(1)}

    def prepare(self, memory, params, arrivals):
        assert sorted(memory) == ["m"]
        memory["m"] = memory["m"] + len(arrivals)
        return [arrival._replace(model=arrival.model + arrival.change) for arrival in arrivals]


def test_the_wrapped_rule_merges_what_was_prepared_and_keeps_a_memory_of_its_own():
    rule, start = Doubling(rule=Optimised(optimiser=Momentum(lr=1.0, b=0.5))), np.zeros(2)
    memory, params, positions = rule.init(start, 1), start, []
    for _ in range(3):
        arrival = Arrival(0, 0, 1.0, 0, Work(), 1, 1, start, start + 4.0)
        params, memory, info = rule.step(memory, params, [arrival], Merge((0,), (1.0,)), 0)
        positions.append(params[0].item())
        assert info == {}
    assert positions == [8.0, 20.0, 34.0]  # changes of 8; momentum steps of 8, 12, 14
    assert memory["m"].tolist() == [3.0]
    assert sorted(memory) == ["m", "wrapped/optimiser/m"]
    assert start.tolist() == [0.0, 0.0]
