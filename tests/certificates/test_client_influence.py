"""How much each client counts, before and after a run."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.certificates.client_influence import client_influence
from asyncfed.strategies.samplers import Fair


def test_before_a_run_there_is_a_prediction_and_nothing_else(small_experiment):
    experiment = small_experiment("afl_mixing")
    found = client_influence(experiment, experiment.problem(), [])
    assert found.prediction.share == pytest.approx(np.full(10, 0.1))
    assert found.prediction_note == found.prediction.limits
    assert (found.shares, found.bias, found.bias_note) == (None, None, "not run yet")


def test_after_a_run_shares_are_counted_and_bias_is_computed(small_experiment):
    experiment = small_experiment("afl_mixing", rounds=10)
    run = af.run(experiment)
    found = client_influence(experiment, experiment.problem(), [run])
    assert found.shares == pytest.approx(run.participation() / 50)
    assert found.bias.applies
    assert found.bias.weight.sum() == pytest.approx(1.0)
    assert found.bias_note == found.bias.why


def test_what_has_no_formula_is_none_and_its_note_says_why(small_experiment):
    experiment = small_experiment("afl_mixing", sampler=Fair())
    found = client_influence(experiment, experiment.problem(), [])
    assert found.prediction is None
    assert "Fair" in found.prediction_note or "fair" in found.prediction_note


def test_a_problem_without_a_minimiser_has_no_bias():
    experiment = af.presets.svm(rounds=2)
    found = client_influence(experiment, experiment.problem(), [af.run(experiment)])
    assert found.bias is None
    assert "no single minimiser" in found.bias_note
    assert found.shares.sum() == pytest.approx(1.0)
