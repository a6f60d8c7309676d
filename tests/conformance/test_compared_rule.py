"""The rule of --robust, once every client has reported, is the independent one."""

import numpy as np
import pytest
from tests.conformance.independent.aggregates import compared

from asyncfed.core.types import Merge, Work
from asyncfed.rules import Arrival, Compared

CLIENTS, PARAMS, MERGES = 7, 4, 40


@pytest.mark.parametrize("factor", [1.5, 4.0])
@pytest.mark.parametrize("largest", [1, 4], ids=["one by one", "buffers"])
def test_it_agrees_with_an_independent_implementation(largest, factor):
    """Two clients lie in turns, by much and by little; some lies are no numbers. Stale starts do not matter."""
    filtered_in_all = kept_in_all = 0
    for seed in range(20):
        chance = np.random.default_rng(seed)
        rule, model, ticket, latest = Compared(liars=2, factor=factor), np.zeros(PARAMS), 0, {}
        memory = rule.init(model, CLIENTS)
        drawn = [[client] for client in range(CLIENTS)]  # everybody once: until then the table is not full
        drawn += [chance.integers(0, CLIENTS, size=chance.integers(1, largest + 1)).tolist() for _ in range(MERGES)]
        for number, clients in enumerate(drawn):
            arrivals = []
            for client in clients:
                start, change = chance.normal(size=PARAMS), np.ones(PARAMS) + chance.normal(size=PARAMS)
                if client < 2 and number >= CLIENTS:
                    change = change * chance.choice([-1.0, -10.0, 1e6, np.nan])
                arrivals.append(as_arrival(ticket, client, float(chance.uniform(0.1, 1.0)), start, change))
                ticket += 1
            merge = Merge(tuple(a.ticket for a in arrivals), tuple(a.weight for a in arrivals))
            before = model
            model, memory, info = rule.step(memory, model, arrivals, merge, 0)
            plain = [(a.client, a.weight, a.model - a.start) for a in arrivals]
            if number < CLIENTS:
                latest |= {client: change for client, _, change in plain}
                continue
            expected, filtered = compared(before, latest, plain, factor)
            scores = {f"filtered/{arrivals[place].ticket}": score for place, score in filtered.items()}
            assert model == pytest.approx(expected, rel=1e-12, abs=1e-12), f"seed {seed}, merge {number}"
            assert info.get("filtered", 0) == len(filtered)
            assert {name for name in info if "/" in name} == set(scores)
            for name, score in scores.items():
                assert not np.isfinite(score) or info[name] == pytest.approx(score, rel=1e-12)
            filtered_in_all += len(filtered)
            kept_in_all += len(arrivals) - len(filtered)
    assert min(filtered_in_all, kept_in_all) > 100  # else the schedules would show nothing


def as_arrival(ticket, client, weight, start, change):
    return Arrival(ticket, client, weight, 0, Work(), 1, 1, start, start + change)
