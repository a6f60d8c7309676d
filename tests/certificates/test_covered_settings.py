"""Following the advice makes a theorem apply."""

import pytest

import asyncfed as af
from asyncfed.certificates.covered_settings import advise_settings
from asyncfed.core.types import Budget
from asyncfed.experiment import changed
from asyncfed.presets import preset, table


@pytest.mark.parametrize(
    "make",
    [
        preset("regression"),
        preset("svm"),
        lambda: preset("regression")(strategy="sync"),
        lambda: table("diabetes"),
        lambda: table("breast_cancer"),
    ],
    ids=["regression", "svm", "sync", "diabetes", "breast_cancer"],
)
def test_whoever_follows_the_advice_is_covered(make):
    experiment = make()
    assert not af.certify(experiment, seeds=0).applying
    advice = advise_settings(experiment)
    certificate = af.certify(advice.experiment, seeds=0)
    assert advice.theorem in {g.name for g in certificate.applying}
    same = changed(advice.experiment, advice.settings)
    assert same.model == advice.experiment.model
    assert advice.options.endswith("--lr theory")


def test_a_covered_run_keeps_what_is_guaranteed():
    advice = advise_settings(preset("regression")())
    certificate = af.certify(af.replace(advice.experiment, budget=Budget(rounds=20)), seeds=1)
    assert certificate.applying
    assert certificate.ok


def test_the_command_line_ends_with_the_advice(cli, tmp_path):
    options = ("certify", "regression", "--seeds", "0", "--out-dir", tmp_path)
    said = cli(*options).out
    assert said.endswith(
        "To be covered (by P), run it with: --set strategy.aggregate=delta_mean --set strategy.max_staleness=20 "
        "--set strategy.work.batch_size=391 --lr theory"
    )
    followed = cli(*options, *said.partition("run it with: ")[2].split()).out
    assert "P guarantees distance" in followed
    assert "To be covered" not in followed
