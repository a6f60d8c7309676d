"""What the strategies of a comparison have to reach."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.analysis.comparison_target import check_target, choose_metric, is_met, progress_target
from asyncfed.core.errors import ConfigError

CURVES = st.lists(st.lists(st.floats(0.001, 1.0), min_size=1, max_size=5), min_size=1, max_size=4)


@given(st.floats(0.001, 1.0), CURVES, st.sampled_from(["objective", "test_accuracy"]))
def test_the_target_is_missed_by_the_start_and_met_by_the_best(start, rest, metric):
    curves = [np.array([start, *values]) for values in rest]
    target = progress_target(metric, curves)
    if np.isfinite(target):
        assert not is_met(metric, np.array([start]), target).any()
        assert any(is_met(metric, curve, target).any() for curve in curves)


def test_what_is_not_a_number_is_left_out():
    assert progress_target("objective", [np.array([1.0, np.nan, 0.0]), np.array([np.nan])]) == pytest.approx(0.05)
    assert np.isnan(progress_target("objective", [np.array([np.nan])]))
    assert np.isnan(progress_target("objective", []))


def test_the_usual_metric():
    assert choose_metric(("round", "objective"), None) == "objective"
    assert choose_metric(("objective", "validation_loss"), None) == "objective"
    assert choose_metric(("objective", "validation_loss"), "validation_loss") == "validation_loss"


def test_the_number_of_a_round_is_no_metric():
    with pytest.raises(ConfigError, match='no metric "round"'):
        choose_metric(("round", "objective"), "round")


@pytest.mark.parametrize(("metric", "target"), [("accuracy", 1.5), ("accuracy", 0.0), ("objective", float("inf"))])
def test_targets_that_nobody_can_be_compared_by(metric, target):
    with pytest.raises(ConfigError, match="target is"):
        check_target(metric, target)
