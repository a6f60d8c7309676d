"""Guaranteed and measured, side by side."""

from dataclasses import replace

import pytest

import asyncfed as af
from asyncfed.certificates import certify
from asyncfed.report.figures.certificate_figure import certificate_figure, draw_certificate


@pytest.fixture(scope="module")
def certificate():
    base = af.presets.regression(rounds=4, strategy="afl_mixing")
    work = af.Work(epochs=2, batch_size=1000, learning_rate=1e-3)
    strategy = af.replace(base.strategy, work=work, schedule=af.ConstantRate(), max_staleness=20)
    return certify(af.replace(base, strategy=strategy), seeds=2)


def labels(panel):
    return [series.label for series in panel.series]


def test_bounds_that_apply_are_drawn_beside_what_was_measured(certificate):
    distance, gap, drift, clock = certificate_figure(certificate).panels
    assert labels(distance) == ["measured", "M (every run)", "M along the path (first run)"]
    assert labels(gap) == ["measured", "M (every run)", "M along the path (first run)"]
    assert labels(drift) == ["measured drift", "Lemma 6"]
    assert drift.note == certificate.drift_note
    assert labels(clock) == ["measured", "best possible clock", "if all clients had the same data"]


def test_the_band_is_the_smallest_and_largest_of_the_runs(certificate):
    measured = certificate_figure(certificate).panels[0].series[0]
    ends = sorted(run.trajectory.distances[-1] for run in certificate.runs)
    assert (measured.low[-1], measured.high[-1]) == (ends[0], ends[-1])


def test_without_an_optimum_there_is_no_distance_to_draw(certificate):
    runs = tuple(replace(run, trajectory=None) for run in certificate.runs)
    figure = certificate_figure(replace(certificate, runs=runs, path=None, drift_bound=None, best_clock=None))
    assert [panel.title for panel in figure.panels] == ["Objective gap"]


def test_it_can_be_drawn(certificate):
    assert len(draw_certificate(certificate).axes) == 4
