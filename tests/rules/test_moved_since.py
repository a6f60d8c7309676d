"""MovedSince: the numbers by hand, their limits, and that merging is left to the wrapped rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Merge, Work
from asyncfed.rules import Arrival, Mean, MovedSince, RuleRun


def measure(start, model, params):
    start, model, params = (np.array(vector, float) for vector in (start, model, params))
    return MovedSince().measure({}, params, Arrival(0, 0, 0.0, 0, Work(), 1, 1, start, model), None)


def test_by_hand():
    """The model went by (3, 4), the client by (0, 2)."""
    measured = measure([1.0, 1.0], [1.0, 3.0], [4.0, 5.0])
    assert measured == {"moved_norm": 5.0, "change_norm": 2.0, "moved_cosine": 0.8}
    assert measure([1.0, 1.0], [1.0, -1.0], [4.0, 5.0])["moved_cosine"] == -0.8


def test_where_nothing_has_moved():
    assert measure([1.0], [3.0], [1.0]) == {"moved_norm": 0.0, "change_norm": 2.0, "moved_cosine": 1.0}
    assert measure([1.0], [1.0], [3.0]) == {"moved_norm": 2.0, "change_norm": 0.0, "moved_cosine": 0.0}
    assert measure([1.0], [1.0], [1.0]) == {"moved_norm": 0.0, "change_norm": 0.0, "moved_cosine": 1.0}
    assert measure([0.0], [1e-200], [1e-200])["moved_cosine"] == 1.0  # their product is below what a float can hold


vectors = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3)


@given(vectors, vectors, vectors)
@settings(max_examples=30)
def test_a_cosine_is_a_cosine(start, model, params):
    measured = measure(start, model, params)
    assert -1.0 <= measured["moved_cosine"] <= 1.0
    assert all(np.isfinite(list(measured.values())))


def test_merging_is_left_to_the_wrapped_rule():
    x = np.array([1.0, 2.0])
    update = Arrival(0, 0, 0.5, 0, Work(), 1, 1, np.zeros(2), np.array([0.5, 0.25]))
    models = [RuleRun(rule, x, 3).step(x, [update], Merge((0,), (0.5,)), 0)[0] for rule in (Mean(), MovedSince())]
    assert models[0].tobytes() == models[1].tobytes()
    assert models[0].tolist() == pytest.approx([1.25, 2.125])


def test_clients_that_never_download_are_refused():
    with pytest.raises(ConfigError, match=r"work\.start is own, which the rule MovedSince cannot be used with"):
        MovedSince().check(Work(start="own"))
    MovedSince().check(Work())
