"""The statistics behind the verdicts, on arrays whose answers are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.analysis.statistics import Interval
from asyncfed.reproduce.curve_statistics import (
    above,
    below,
    compare_speed,
    cost_ratios,
    linearity,
    matching_round,
    variability,
)
from asyncfed.reproduce.curves import Curve, mean_curve, series_of, shown_rounds, spread_over_seeds
from asyncfed.reproduce.run_measures import last_level

FAST = Interval(0.5, 0.4, 0.6, 5)
SLOW = Interval(2.0, 1.5, 2.5, 5)
UNSURE = Interval(1.0, 0.5, 1.5, 5)
ONE_SEED = Interval(0.5, float("nan"), float("nan"), 1)


def test_an_interval_across_the_limit_tells_nothing():
    assert [below(each, 1.0) for each in (FAST, SLOW, UNSURE, ONE_SEED)] == [
        "holds",
        "does not hold",
        "undecided",
        "undecided",
    ]
    assert [above(each, 1.0) for each in (FAST, SLOW, UNSURE, ONE_SEED)] == [
        "does not hold",
        "holds",
        "undecided",
        "undecided",
    ]


def test_faster_per_round_need_not_be_faster_in_time():
    assert compare_speed(FAST, FAST) == "holds"
    assert compare_speed(FAST, SLOW) == compare_speed(FAST, UNSURE) == "holds per round but not in time"
    assert compare_speed(SLOW, FAST) == "does not hold"
    assert compare_speed(UNSURE, FAST) == "undecided"


def test_costs_are_compared_at_a_loss_that_both_reach():
    rounds = np.arange(1.0, 5.0)
    one = Curve(rounds, np.array([8.0, 2.0, 1.0, 0.1]))
    other = Curve(rounds, np.array([8.0, 8.0, 8.0, 2.0]))
    assert cost_ratios([one], [other]).tolist() == [2.0 / 4.0]
    assert cost_ratios([other, one], [one, one]).tolist() == [2.0, 1.0]


@given(st.floats(0.1, 10.0), st.floats(0.5, 0.99))
def test_a_steady_decline_has_no_variability_whatever_its_scale_and_pace(scale, pace):
    assert variability(scale * pace ** np.arange(50)) == pytest.approx(0.0, abs=1e-12)


def test_variability_is_that_of_the_relative_changes():
    steps = np.array([0.1, -0.1] * 20)
    assert variability(np.exp(np.cumsum(steps))) == pytest.approx(steps[1:].std())


def test_linearity():
    rounds = np.arange(1.0, 101.0)
    assert linearity(3.0 * rounds + 1.0) == 1.0
    assert linearity(rounds**4) < 0.8


def test_the_round_from_which_one_matches_another():
    flat = np.full(100, 1.0)
    late = np.where(np.arange(100) < 50, 9.0, 1.0)
    assert matching_round(late, flat) == 60.0  # the first whole window of ten rounds at 1 ends here
    assert matching_round(flat, flat) == 1.0
    assert np.isnan(matching_round(2.0 * flat, flat))


def test_the_level_at_the_end_ignores_the_beginning():
    assert last_level(np.array([1e9] * 90 + [0.5] * 10)) == pytest.approx(0.5)


def test_bands_over_seeds():
    values = np.array([[1.0, 2.0], [4.0, 2.0]])
    interval, reach = spread_over_seeds(values, "interval"), spread_over_seeds(values, "range")
    assert interval.middle.tolist() == pytest.approx([2.0, 2.0])
    assert interval.low[0] < 1.0 < 4.0 < interval.high[0]
    assert interval.low[1] == pytest.approx(interval.high[1])
    assert [part.tolist() for part in reach] == [[2.5, 2.0], [1.0, 2.0], [4.0, 2.0]]


def test_what_has_no_logarithm_has_no_geometric_mean():
    assert np.isnan(spread_over_seeds(np.array([[1.0], [np.nan]]), "interval").middle[0])


def test_fractions_are_averaged_round_by_round():
    rounds = np.array([1.0, 2.0])
    average = mean_curve([Curve(rounds, np.array([1.0, 3.0])), Curve(rounds, np.array([3.0, 5.0]))])
    assert average.y.tolist() == [2.0, 4.0]


@given(st.integers(1, 1000))
def test_the_first_hundred_rounds_and_the_last_are_always_drawn(count):
    shown = shown_rounds(count) + 1
    assert set(range(1, min(count, 100) + 1)) <= set(shown.tolist())
    assert shown[-1] == count
    assert np.all(np.diff(shown) > 0)


def test_one_seed_has_no_band():
    curve = Curve(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    assert series_of([curve], "AFL").low == ()
    assert len(series_of([curve, curve], "AFL").low) == 2
