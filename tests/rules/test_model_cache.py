"""The cache of models: by hand, and what merges without settings are."""

import numpy as np
import pytest

from asyncfed.core.types import Combine, Merge, Work
from asyncfed.rules import Arrival, ModelCache, RuleRun


def merged(run, params, models, **told):
    """`models` by client; the settings as `told`, or none."""
    count = len(models)
    arrivals = [
        Arrival(place, client, 1.0, 0, Work(), 1, 1, params, np.array([model], params.dtype))
        for place, (client, model) in enumerate(models.items())
    ]
    names = ("picked", "counts", "total", "synchronised", "forgotten")
    usual = {"picked": count, "counts": (1,) * count, "total": 4, "synchronised": (), "forgotten": ()}
    combiner = Combine("model_cache", tuple((name, {**usual, **told}[name]) for name in names)) if told else None
    merge = Merge(tuple(range(count)), (1.0 / count,) * count, 0.0, "model", combiner)
    return run.step(params, arrivals, merge, 0)[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_by_hand(dtype):
    """Four clients with 1, 1, 2 and 4 samples; the first model is 8."""
    x = np.array([8.0], dtype)
    run = RuleRun(ModelCache(), x, 4)
    x = merged(run, x, {0: 16.0, 2: 12.0}, picked=1, counts=(1, 2), total=8)
    assert x.item() == 9.0  # c = (16, 8, 8, 8); client 2 is undrafted
    x = merged(run, x, {1: 0.0}, counts=(1,), total=8)
    assert x.item() == 9.0  # c = (16, 0, 12, 8): (16 + 24 + 32) / 8
    x = merged(run, x, {1: 8.0}, counts=(1,), total=8, synchronised=((3, 4),))
    assert x.item() == 10.5  # c = (16, 8, 12, 9): (16 + 8 + 24 + 36) / 8
    x = merged(run, x, {1: 8.0}, counts=(1,), total=4, forgotten=(3,))
    assert x.item() == 12.0  # client 3 is gone: (16 + 8 + 24) / 4
    assert x.dtype == dtype


def test_without_settings_all_are_picked_and_count_the_same():
    x = np.array([4.0])
    run = RuleRun(ModelCache(), x, 4)
    assert merged(run, x, {0: 8.0, 3: 0.0}).tolist() == [4.0]
    assert merged(run, x, {3: 4.0}).tolist() == [5.0]
