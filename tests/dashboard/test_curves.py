"""Curves are those of the journal, and thinning keeps their extremes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.dashboard.curves import AXES, make_curves, thin
from asyncfed.dashboard.run_view import RunView


def opened(path):
    view = RunView(path.name, path)
    view.refresh()
    return view


def test_curves_are_those_of_the_journal(runs):
    run = af.load(runs / "named.sqlite")
    curves = make_curves(opened(runs / "named.sqlite"), 600)
    np.testing.assert_allclose(curves["metrics"]["objective"], run.evaluations["objective"], rtol=1e-6)
    np.testing.assert_allclose(curves["elapsed"], run.evaluations["elapsed"], rtol=1e-6)
    for axis, columns in (("bytes", ("bytes_down", "bytes_up")), ("energy", ("energy",))):
        total = np.sum([run.rounds[name] for name in columns], axis=0)
        np.testing.assert_allclose(curves[axis][1:], total, rtol=1e-6)
    assert {len(curves[axis]) for axis in AXES} == {len(run.evaluations["round"])}


@given(st.lists(st.one_of(st.floats(), st.just(float("nan"))), max_size=300), st.integers(1, 40))
def test_thinning_keeps_the_ends_and_the_extremes(values, points):
    array = np.array(values, float)
    kept = thin(array, points)
    assert list(kept) == sorted(set(kept))
    assert len(kept) <= max(2 * points + 2, min(len(array), 2 * points))
    if len(array):
        assert (kept[0], kept[-1]) == (0, len(array) - 1)
        finite = array[np.isfinite(array)]
        if len(finite):
            assert {finite.min(), finite.max()} <= set(array[kept])
