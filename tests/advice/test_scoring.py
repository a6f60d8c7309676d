"""Targets, what reaching them costs, and how settings rank."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.advice.scoring import Target, cost_of_target, find_target, place_of_target, score
from asyncfed.advice.trial_run import TrialRun

TARGET = Target("objective", 10.0, 0.0, 0.9)


def run_of(losses, verdict="finished", worst=None):
    count = len(losses)
    return TrialRun(
        verdict=verdict,
        updates=tuple(range(count)),
        elapsed=tuple(map(float, range(count))),
        bytes=tuple(range(0, 10 * count, 10)),
        energy=tuple(float(2 * i) for i in range(count)),
        loss=tuple(losses),
        total_bytes=10 * count,
        total_energy=2.0 * count,
        worst_loss=worst,
        worst_test_loss=worst,
        worst_test_accuracy=None,
        jain_index=1.0,
    )


def test_the_target_is_reached_when_the_run_stays_below_it():
    noisy = run_of([10.0, 0.5, 4.0, 1.0, 0.9, 0.8])
    assert place_of_target(noisy, TARGET.level) == 3
    assert cost_of_target(noisy, TARGET.level, "elapsed") == 3.0
    assert cost_of_target(noisy, TARGET.level, "bytes") == 30.0
    assert cost_of_target(noisy, TARGET.level, "energy") == 6.0
    assert place_of_target(run_of([10.0, 0.5, 4.0]), TARGET.level) is None
    assert place_of_target(run_of([10.0, 0.5, None]), TARGET.level) is None
    assert place_of_target(run_of([10.0, 0.5], "diverged"), TARGET.level) is None


def test_the_target_is_by_what_any_run_reached_that_did_not_diverge():
    found = find_target("objective", [run_of([10.0, 2.0]), run_of([10.0, 0.0, 1e9], "diverged")], 0.5)
    assert (found.best, found.level) == (2.0, 6.0)
    assert find_target("objective", [run_of([10.0, 11.0])], 0.5) is None


def rank(run, aim="time", whole=True):
    return score([run], TARGET, aim, 100.0, whole)


def test_who_reaches_the_target_earlier_ranks_first_and_who_diverged_last():
    early, late = run_of([10.0, 0.5, 0.5]), run_of([10.0, 5.0, 0.5])
    near, far = run_of([10.0, 2.0]), run_of([10.0, 8.0])
    ranks = [rank(run) for run in (early, late, near, far, run_of([10.0, 0.1], "diverged"))]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == 5


def test_a_run_cut_short_is_given_the_cost_it_is_on_its_way_to():
    halfway = run_of([10.0, 10.0 * 0.1**0.5])  # as far in logarithms as it still has to go
    assert rank(halfway, whole=False) == pytest.approx(log(2 * 100.0), abs=0.01)
    assert rank(halfway) > rank(halfway, whole=False) + 10


def test_the_worst_clients_rank_by_their_loss():
    assert rank(run_of([10.0, 1.0], worst=2.0), "worst_clients") < rank(run_of([10.0, 0.1], worst=3.0), "worst_clients")


@given(st.lists(st.floats(0.0, 20.0), min_size=1, max_size=20), st.sampled_from(["time", "bytes", "energy"]))
def test_a_score_is_always_a_number(losses, aim):
    value = rank(run_of([10.0, *losses]), aim)
    assert value == value
    assert abs(value) < 101
