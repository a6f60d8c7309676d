"""The best possible clock: numbers by hand, its laws, the speed-up of the paper, and Rennala's and Malenia's clocks."""

from heapq import heappop, heappush

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.server import Server
from asyncfed.core.types import Cancel, Dispatch, Report
from asyncfed.strategies import Malenia, Rennala, Ringleader
from asyncfed.theory.time_complexity import (
    Counts,
    best_clock,
    concurrency_speed_up,
    convex_counts,
    malenia_plan,
    malenia_step_time,
    nonconvex_counts,
    rennala_plan,
    rennala_step_time,
    strongly_convex_counts,
)

TIMES = st.lists(st.floats(0.05, 20.0), min_size=1, max_size=8)


def clock_of(strategy, times, versions):
    """The seconds at which so many versions were made, if client i always takes times[i] seconds."""
    server, heap, gone, now, merged = Server(strategy, [1] * len(times)), [], set(), 0.0, []
    outputs = server.start()
    while len(merged) < versions:
        for output in outputs:
            if isinstance(output, Dispatch):
                heappush(heap, (now + times[output.client], output.ticket, output.client))
            elif isinstance(output, Cancel):
                gone.add(output.ticket)
        now, ticket, client = heappop(heap)
        if ticket in gone:
            outputs = []
            continue
        outputs = server.receive(Report(ticket, client, now, times[client], 1))
        merged += [now] * (server.version - len(merged))
    return merged


def test_by_hand():
    # The m fastest of (1, 2, 6): harmonic means 1, 4/3 and 3 / (1 + 1/2 + 1/6) = 9/5.
    times = [6.0, 1.0, 2.0]
    assert best_clock(times, Counts(10.0, 0.0), "same") == 10.0  # without noise the fastest alone is best
    assert best_clock(times, Counts(0.0, 60.0), "same") == pytest.approx(36.0)  # 60 / (1 + 1/2 + 1/6): all of them
    assert best_clock(times, Counts(12.0, 12.0), "same") == 24.0  # 24, 4/3 * 18 = 24 and 9/5 * 16
    assert best_clock(times, Counts(10.0, 30.0), "different") == 6 * 10 + 3 * 30 / 3


def test_the_counts_by_hand():
    assert nonconvex_counts(smoothness=2, start_gap=3, gradient_variance=4, target=0.1) == pytest.approx((60, 2400))
    assert convex_counts(smoothness=9, start_distance=2, gradient_variance=4, target=0.25) == pytest.approx((12, 256))
    assert strongly_convex_counts(smoothness=9, strong_convexity=1, gradient_variance=4, target=0.25) == pytest.approx(
        (3, 16)
    )


@given(times=TIMES, steps=st.floats(0.0, 1e3), gradients=st.floats(0.0, 1e4), factor=st.floats(0.1, 10.0))
@settings(max_examples=20, deadline=None)
def test_its_laws(times, steps, gradients, factor):
    counts = Counts(steps, gradients)
    same, different = (best_clock(times, counts, data) for data in ("same", "different"))
    assert same <= different * (1 + 1e-12) + 1e-300  # data that differ make it no easier
    for data, seconds in (("same", same), ("different", different)):
        assert best_clock(np.array(times) * factor, counts, data) == pytest.approx(factor * seconds)
        assert best_clock(times[::-1], counts, data) == seconds
    assert best_clock([*times, 1e9], counts, "same") <= same * (1 + 1e-12)  # a slow client does no harm ...
    equal = best_clock([2.0] * len(times), counts, "same")
    assert equal == pytest.approx(best_clock([2.0] * len(times), counts, "different"))  # ... and equal times are alike
    assert best_clock([*times, float("inf")], counts, "same") == pytest.approx(same)


def test_the_papers_speed_up():
    saved = concurrency_speed_up([10.0] * 900 + [60.0] * 100, 10)
    assert saved.asynchronous == 15.0
    assert saved.synchronous == pytest.approx(10 * 0.9**10 + 60 * (1 - 0.9**10), rel=1e-12)
    assert round(saved.synchronous, 2) == 42.57
    assert saved.factor == pytest.approx(2.838, abs=1e-3)


@given(times=TIMES, concurrency=st.integers(1, 30))
@settings(max_examples=20, deadline=None)
def test_who_does_not_wait_is_never_slower(times, concurrency):
    saved = concurrency_speed_up(times, concurrency)
    assert saved.asynchronous <= saved.synchronous * (1 + 1e-12)
    assert saved.synchronous <= max(times) * (1 + 1e-12)
    assert concurrency_speed_up(times, 1).factor == pytest.approx(1.0)


def test_the_speed_up_is_what_draws_show():
    rng = np.random.default_rng(0)
    times = np.array([1.0, 2.0, 3.0, 10.0])
    longest = rng.choice(times, (50_000, 3)).max(axis=1).mean()
    assert concurrency_speed_up(times, 3).synchronous == pytest.approx(longest, rel=1e-2)


@given(times=TIMES, changes=st.integers(1, 12))
@settings(max_examples=15, deadline=None)
def test_the_clocks_of_rennala_and_malenia_are_within_their_bounds(times, changes):
    for strategy, bound in (
        (Rennala(changes_per_step=changes), rennala_step_time(times, changes)),
        (Malenia(changes_per_step=changes), malenia_step_time(times, changes)),
    ):
        steps = np.diff([0.0, *clock_of(strategy, times, 3)])
        assert steps.max() <= bound * (1 + 1e-9)


@given(
    times=TIMES,
    noise=st.floats(0.0, 8.0),
    gap=st.floats(0.1, 2.0),
    target=st.floats(0.5, 2.0),
)
@settings(max_examples=6, deadline=None)
def test_the_whole_run_is_within_the_theorems_factor_of_the_best_possible_clock(times, noise, gap, target):
    problem = {"smoothness": 1.0, "start_gap": gap, "gradient_variance": noise, "target": target}
    counts = nonconvex_counts(**problem)
    for make, plan, data, factor in (
        (Rennala, rennala_plan(times, **problem), "same", 8.0),
        (Malenia, malenia_plan(times, **problem), "different", 16.0),
    ):
        end = clock_of(make(changes_per_step=plan.changes_per_step), times, plan.steps)[-1]
        assert end <= plan.seconds * (1 + 1e-9)
        one_step = plan.seconds / plan.steps
        assert plan.seconds <= factor * best_clock(times, counts, data) * (1 + 1e-9) + one_step


@given(times=TIMES)
@settings(max_examples=15, deadline=None)
def test_n_steps_of_ringleader_take_at_most_two_times_of_the_slowest(times):
    clients = len(times)
    ends = clock_of(Ringleader(), times, 4 * clients)
    for last in range(2 * clients, 4 * clients, clients):
        assert ends[last - 1] - ends[last - 1 - clients] <= 2 * max(times) * (1 + 1e-9)


@pytest.mark.parametrize("times", [[], [0.0, 1.0], [-1.0], [float("nan")]])
def test_what_is_no_time_is_refused(times):
    with pytest.raises(ConfigError, match="times must be one number of seconds for each client, all above 0"):
        best_clock(times, Counts(1.0, 1.0), "same")


def test_other_refusals():
    with pytest.raises(ConfigError, match="target is 0; it must be above 0"):
        nonconvex_counts(smoothness=1, start_gap=1, gradient_variance=1, target=0)
    with pytest.raises(ConfigError, match="concurrency is 0; at least 1 client"):
        concurrency_speed_up([1.0], 0)
