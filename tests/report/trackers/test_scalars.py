"""A run as named numbers."""

import pytest

import asyncfed as af
from asyncfed.report.trackers.scalars import scalars_of, settings_of


@pytest.fixture
def run(small, tmp_path):
    return af.run(small(), out=tmp_path / "run.sqlite")


def test_scalars_are_all_that_was_measured_where_it_was_measured(run):
    scalars = list(scalars_of(run))
    objective = [(s.step, s.value, s.elapsed) for s in scalars if s.name == "evaluation/objective"]
    measured = run.evaluations
    assert objective == list(zip(measured["updates"], measured["objective"], measured["elapsed"], strict=True))
    assert [s.step for s in scalars if s.name == "round/staleness_max"] == [1, 2, 3]


def test_settings_are_dotted_keys_and_how_it_ended(run):
    settings = settings_of(run)
    assert settings["strategy.work.epochs"] == "1"
    assert settings["verdict"] == "finished"
