"""The options that describe an experiment."""

import pytest

import asyncfed as af
from asyncfed.presets import DELAYS
from asyncfed.strategies import FedAvg


def test_run_takes_a_preset_and_its_options(cli, out):
    options = ["--reading", "published", "--strategy", "published", "--fraction", 0.3, "--clients", 7]
    result = cli("run", "regression", *options, "--rounds", 2, "--seed", 5, "--delays", "stragglers", "--out", out)
    assert result.code == 0
    expected = af.presets.regression(
        reading="published",
        strategy="published",
        fraction=0.3,
        num_clients=7,
        rounds=2,
        seed=5,
        delays=DELAYS["stragglers"][1](),
    )
    assert af.load(out).experiment == expected


def test_run_sets_any_key(cli, toml, out):
    settings = ["strategy.concurrency=3", "split.kind=iid", 'name="two words"', "evaluation.every=0"]
    flags = [flag for setting in settings for flag in ("--set", setting)]
    assert cli("run", toml, "--out", out, *flags).code == 0
    experiment = af.load(out).experiment
    assert (experiment.strategy.concurrency, experiment.name, experiment.evaluation.every) == (3, "two words", 0)
    assert experiment.split == af.data.IID()


def test_run_with_another_strategy_keeps_the_work(cli, toml, out, small):
    assert cli("run", toml, "--strategy", "sync", "--out", out).code == 0
    work = small().strategy.work
    assert af.load(out).experiment.strategy == FedAvg(cohort_size=2, weighting="equal", work=work)


def test_the_theory_rate_is_one_that_a_theorem_covers(cli, out):
    options = [
        "--strategy",
        "sync",
        "--reading",
        "published",
        "--rounds",
        "2",
        "--set",
        "strategy.work.batch_size=1000",
    ]
    result = cli("run", "regression", *options, "--lr", "theory", "--out", out)
    assert "constant: what R* allows" in result.out
    assert "R*" in {g.name for g in af.load(out).certificate().applying}


def test_a_learning_rate_may_be_given_as_a_number(cli, out):
    cli("run", "regression", "--rounds", "1", "--lr", "0.0005", "--out", out)
    assert af.load(out).experiment.strategy.work.learning_rate == 0.0005


@pytest.mark.parametrize(
    ("lr", "words"), [("fast", 'a positive number, or "theory"'), ("-1", "must be a positive number")]
)
def test_a_learning_rate_that_is_none(cli, out, lr, words):
    result = cli("run", "regression", "--lr", lr, "--out", out)
    assert result.code == 2
    assert words in result.err
    assert not out.exists()


def test_the_theory_rate_of_a_rule_without_one(cli, out):
    result = cli("run", "svm", "--lr", "theory", "--out", out)
    assert result.code == 2
    assert "No theorem covers this experiment" in result.err
