"""The table of batches: numbers by hand, one point per batch, and that rounding does not build up."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.types import Merge, Work
from asyncfed.rules import Arrival, BatchTable, RuleRun
from asyncfed.rules.batch_table import new_table


def arrival(client, change, staleness, weight):
    start = np.array([10.0])
    return Arrival(0, client, weight, staleness, Work(), 1, 1, start, start + change)


def step(run, params, arrivals, new):
    tickets = tuple(range(len(arrivals)))
    merge = Merge(tickets, tuple(a.weight for a in arrivals), combiner=new_table(new))
    return run.step(params, arrivals, merge, 0)


def test_by_hand():
    run, x = RuleRun(BatchTable(), np.zeros(1), 2), np.zeros(1)
    x, info = step(run, x, [arrival(0, 4.0, 0, 0.5), arrival(0, 2.0, 0, 0.5), arrival(1, 1.0, 0, 0.5)], new=True)
    assert (x.item(), info["largest_delay"]) == (2.0, 0)  # (3 + 1) / 2
    x, info = step(run, x, [arrival(0, 0.0, 1, 0.5)], new=False)  # joins its batch: the mean is 2
    assert (x.item(), info["largest_delay"]) == (3.5, 1)  # 2 + (2 + 1) / 2
    x, info = step(run, x, [arrival(0, 7.0, 0, 0.5)], new=False)  # computed at version 2: a batch of its own
    assert (x.item(), info["largest_delay"]) == (7.5, 2)  # 3.5 + (7 + 1) / 2; client 1's point is version 0
    x, info = step(run, x, [arrival(3, 5.0, 1, 1.0)], new=True)  # the others are no longer in the table
    assert (x.item(), info["largest_delay"]) == (12.5, 1)


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(-1e3, 1e3), st.integers(0, 3)), min_size=1, max_size=60))
@settings(max_examples=15, deadline=None)
def test_the_running_sum_is_that_of_the_rows(arrivals):
    run, x, rows = RuleRun(BatchTable(), np.zeros(1), 6), np.zeros(1), {}
    for version, (client, change, staleness) in enumerate(arrivals):
        staleness = min(staleness, version)
        before = x
        x, _ = step(run, x, [arrival(client, change, staleness, 0.25)], new=False)
        point, batch = rows.get(client, (None, []))
        measured = (10.0 + change) - 10.0
        rows[client] = (version - staleness, [*batch, measured] if point == version - staleness else [measured])
        expected = before + 0.25 * sum(np.mean(batch) for _, batch in rows.values())
        np.testing.assert_allclose(x, expected, rtol=1e-9, atol=1e-8)
