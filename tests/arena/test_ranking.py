from math import atan, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.arena.ranking import holm, nemenyi_factor, paired_p_value, rank_strategies


def noisy(mean, spread=0.01):
    return mean + spread * np.array([1.0, -1.0, 0.5, -0.5, 0.0])


def places(logs, reached=None):
    found = rank_strategies(logs, reached or dict.fromkeys(logs, 5))
    return {name: (place.rank, place.group) for name, place in found.items()}


def test_what_differs_clearly_is_in_groups_of_its_own():
    logs = {"slow": noisy(3.0), "fast": noisy(1.0), "middle": noisy(2.0, 0.02)}
    assert places(logs) == {"fast": (1, 1), "middle": (2, 2), "slow": (3, 3)}


def test_what_varies_too_much_stays_in_the_group_of_the_best():
    logs = {"best": noisy(1.0), "wild": noisy(1.3, 1.0), "worse": noisy(1.5, 0.011)}
    assert places(logs) == {"best": (1, 1), "wild": (2, 1), "worse": (3, 2)}


def test_tests_are_paired_by_seed():
    seeds = np.array([0.0, 2.0, -1.0, 3.0, 1.0])  # as large as all differences, and the same for both
    assert places({"one": seeds, "other": seeds + noisy(0.1)}) == {"one": (1, 1), "other": (2, 2)}


def test_those_that_never_reached_the_target_share_the_last_ranks_and_have_no_group():
    logs = {"never": noisy(5.0, 0.0), "reached": noisy(1.0), "nor": noisy(5.0, 0.0)}
    assert places(logs, {"never": 0, "reached": 5, "nor": 0}) == {
        "reached": (1, 1),
        "never": (2.5, None),
        "nor": (2.5, None),
    }


def test_equal_ones_share_rank_and_group():
    same = noisy(1.0)
    assert places({"one": same, "other": same.copy()}) == {"one": (1.5, 1), "other": (1.5, 1)}


def test_one_seed_tells_nothing_apart():
    logs = {"one": np.array([1.0]), "other": np.array([9.0])}
    assert [group for _, group in places(logs, {"one": 1, "other": 1}).values()] == [1, 1]


def test_the_p_value_is_that_of_students_t():
    # two differences, 1 and 3: t = 2 / (sqrt(2) / sqrt(2)) = 2, and with one degree of freedom p = 1 - 2 atan(2) / pi
    assert paired_p_value(np.array([1.0, 3.0])) == pytest.approx(1 - 2 * atan(2) / pi)


def test_holm_compares_the_smallest_with_alpha_over_all_of_them():
    assert holm([0.01, 0.02, 0.03, 0.2], 0.05) == [True, False, False, False]
    assert holm([0.01, 0.015, 0.02, 0.2], 0.05) == [True, True, True, False]
    assert holm([], 0.05) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_rejects_no_more_than_without_a_correction_and_no_less_than_bonferroni(p_values):
    for p_value, rejected in zip(p_values, holm(p_values, 0.05), strict=True):
        assert not (rejected and p_value > 0.05)
        assert rejected or p_value > 0.05 / len(p_values)


def test_the_critical_difference_of_the_literature():
    # Demšar (2006), table 5: q = 2.569 for four classifiers; his example has 14 data sets
    assert nemenyi_factor(4) / 14**0.5 == pytest.approx(2.569 * (4 * 5 / (6 * 14)) ** 0.5, abs=1e-3)
    assert nemenyi_factor(1) == 0.0
