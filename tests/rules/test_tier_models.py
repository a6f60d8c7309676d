"""The models of tiers: by hand, and what merges without settings are."""

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Combine, Merge, Work
from asyncfed.rules import Arrival, RuleRun, TierModels


def merged(run, params, models, tier=None, weights=()):
    count = len(models)
    arrivals = [
        Arrival(i, i, 1.0 / count, 0, Work(), 1, 1, params, np.array(model, params.dtype))
        for i, model in enumerate(models)
    ]
    combiner = None if tier is None else Combine("tier_models", (("tier", tier), ("weights", weights)))
    merge = Merge(tuple(range(count)), (1.0 / count,) * count, 0.0, "model", combiner)
    return run.step(params, arrivals, merge, 0)[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_by_hand(dtype):
    x = np.array([8.0, 0.0], dtype)
    run = RuleRun(TierModels(tiers=2), x, 4)
    x = merged(run, x, [[2.0, 4.0], [6.0, 0.0]], 0, (0.5, 0.5))
    assert x.tolist() == [6.0, 1.0]  # w_1 = (4, 2), w_2 = (8, 0) as at the start
    x = merged(run, x, [[0.0, 16.0]], 1, (0.25, 0.75))
    assert x.tolist() == [1.0, 12.5]  # (4, 2) / 4 + 3 (0, 16) / 4
    assert x.dtype == dtype


def test_without_settings_all_merges_are_of_the_first_tier():
    x = np.array([4.0])
    run = RuleRun(TierModels(tiers=4), x, 4)
    assert merged(run, x, [[8.0]]).tolist() == [5.0]


def test_no_tier_is_refused():
    with pytest.raises(ConfigError, match=r"rule.tiers is -1; there must be at least 1 tier"):
        TierModels(tiers=-1)
