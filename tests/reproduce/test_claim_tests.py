"""What the claims about fluctuation say of curves that were made for it."""

from types import SimpleNamespace

import numpy as np
import pytest

from asyncfed.reproduce import claim_tests
from asyncfed.reproduce.curve_statistics import growth_of_variability, late_variability
from asyncfed.reproduce.curves import Curve
from asyncfed.reproduce.published_curves import published_curves

STRATEGIES = {
    ("published", "afl"): "published",
    ("published", "sync"): "published_sync",
    ("text", "afl"): "afl",
    ("text", "sync"): "sync",
}


class Line:
    """Curves whose logarithm changes by as much as `changes[fraction][seed]` from round to round, up and down."""

    def __init__(self, strategy, changes):
        self.arm = SimpleNamespace(preset="regression", strategy=strategy, fractions=tuple(changes))
        self.lowest, self.highest = min(changes), max(changes)
        self._changes = changes

    def losses(self, fraction):
        return [
            Curve(np.arange(40), np.exp(change / 2 * (-1.0) ** np.arange(40))) for change in self._changes[fraction]
        ]

    def averaged(self):
        return self.losses(self.lowest)


def study(reading, afl, sync=None):
    changes = {"afl": afl, "sync": sync}

    def line(figure, asked, mode="afl"):
        assert asked == reading
        return Line(STRATEGIES[reading, mode], changes[mode])

    return SimpleNamespace(line=line)


AFL = {0.2: [0.02, 0.2, 0.8], 0.9: [0.02, 0.2, 0.8]}
SYNC = {0.2: [0.01, 0.1, 0.4], 0.9: [0.01, 0.1, 0.4]}


def test_on_the_same_data_twice_as_variable_is_more_variable():
    found = claim_tests.afl_varies_more(study("text", AFL, SYNC), "text", figure=6)
    assert found.interval.mean == pytest.approx(2.0)
    assert found.verdict == "holds"
    assert "published" not in found.reason


def test_on_independent_data_the_first_clients_rows_may_decide_as_well():
    found = claim_tests.afl_varies_more(study("published", AFL, SYNC), "published", figure=6)
    assert found.interval.mean == pytest.approx(2.0)
    assert found.verdict == "undecided"
    assert found.interval.low < 0.645 < found.interval.high
    assert "On the same data the interval is narrower (95 %: 2.00 to 2.00)" in found.reason
    assert "On the published curves the ratio is 0.81." in found.reason  # of 20 and 90 %


def test_the_published_curves_vary_less_with_afl():
    """The three fractions for which the losses of each round are known."""
    changes = {fraction: [0.1, 0.1] for fraction in (0.2, 0.5, 0.9)}
    found = claim_tests.afl_varies_more(study("published", changes, changes), "published", figure=6)
    assert "On the published curves the ratio is 0.65." in found.reason


def test_low_fractions_are_compared_with_high_ones():
    afl = {0.2: [0.4, 0.4], 0.5: [9.0, 9.0], 0.9: [0.1, 0.1]}
    found = claim_tests.few_clients_vary_more(study("text", afl), "text", figure=5)
    assert (found.interval.mean, found.verdict) == (pytest.approx(4.0), "holds")
    found = claim_tests.few_clients_vary_more(study("published", afl), "published", figure=5)
    assert "On the published curves the ratio is 0.40." in found.reason


def test_fluctuations_that_persist():
    found = claim_tests.fluctuations_persist(study("published", {0.2: [0.3, 0.3]}), "published")
    expected = late_variability(published_curves()["regression", "published", 0.2])
    assert found.interval.mean == pytest.approx(0.3, rel=0.01)
    assert found.verdict == "holds"
    assert f"On the published curve it changes by {expected:.2%}." in found.reason


def test_fluctuations_that_grow():
    calm, wild = np.exp(0.01 * (-1.0) ** np.arange(10)), np.exp(0.04 * (-1.0) ** np.arange(10))
    assert growth_of_variability(np.concatenate([calm, calm, calm, wild])) == pytest.approx(4.0)
    found = claim_tests.fluctuations_grow(study("text", {0.2: [0.3, 0.2]}), "text")
    assert found.interval.mean == pytest.approx(1.0)
