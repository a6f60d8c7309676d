"""LastModels: a trace by hand, one place in the queue, and that the mean is of the last K whatever came before."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Merge, Work
from asyncfed.rules import Arrival, LastModels, RuleRun


def put(run, x, *models):
    arrivals = [
        Arrival(t, 0, 0.1, 0, Work(), 1, 1, np.zeros_like(x), np.asarray(model, x.dtype))
        for t, model in enumerate(models)
    ]
    merge = Merge(tuple(range(len(models))), (0.1,) * len(models), keep=0.5, of="model")
    return run.step(x, arrivals, merge, 0)[0]


def test_by_hand():
    x = np.array([6.0])
    run = RuleRun(LastModels(queue_size=3), x, 4)
    x = put(run, x, [0.0])
    assert x.tolist() == [4.0]  # (0 + 6 + 6)/3
    x = put(run, x, [3.0])
    assert x.tolist() == [3.0]  # (0 + 3 + 6)/3
    x = put(run, x, [9.0], [12.0])
    assert x.tolist() == [8.0]  # 12 has taken the place of 0: (12 + 3 + 9)/3


@given(st.integers(1, 5), st.lists(st.floats(-10, 10), min_size=1, max_size=20))
@settings(max_examples=30)
def test_it_is_the_mean_of_the_last_ones(size, models):
    x = np.array([7.0])
    run, seen = RuleRun(LastModels(queue_size=size), x, 4), [7.0] * size
    for model in models:
        x = put(run, x, [model])
        seen.append(model)
        assert x.item() == pytest.approx(np.mean(seen[-size:]), rel=1e-14, abs=1e-14)


def test_with_one_place_the_last_model_is_the_model():
    x = np.zeros(2, np.float32)
    run = RuleRun(LastModels(queue_size=1), x, 4)
    model = np.array([0.1, -3e-8], np.float32)
    assert put(run, x, model).tobytes() == model.tobytes()


def test_no_place_is_refused():
    with pytest.raises(ConfigError, match=r"rule\.queue_size is 0; the queue holds at least 1 model"):
        LastModels(queue_size=0)
