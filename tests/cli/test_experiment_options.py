"""The options that describe an experiment."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

import asyncfed as af
from asyncfed.cli.experiment_options import (
    DELAY_NAMES,
    ExperimentOptions,
    parse_setting,
    takes_experiment,
)
from asyncfed.core.errors import ConfigError
from asyncfed.presets import DELAYS
from asyncfed.strategies import FedAvg


def test_run_takes_a_preset_and_its_options(cli, out):
    options = ["--reading", "published", "--strategy", "published", "--fraction", 0.3, "--num-clients", 7]
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


def test_a_command_gets_the_fields_it_does_not_leave_out():
    @takes_experiment("data", "lr")
    def command(options: ExperimentOptions, out: str = "here") -> None:
        received.append((options, out))

    received = []
    names = list(inspect.signature(command).parameters)
    assert names[0] == "experiment"
    assert names[-1] == "out"
    assert not {"data", "lr"} & set(names)
    values = {field.name: field.default for field in fields(ExperimentOptions) if field.name in names}
    command(**values | {"seed": 3}, out="there")
    assert received == [(ExperimentOptions(seed=3), "there")]


@pytest.mark.parametrize(
    ("text", "setting"),
    [("a=1", ("a", 1)), ("a.b = [1, 2]", ("a.b", [1, 2])), ("a=text", ("a", "text")), ("a=x=y", ("a", "x=y"))],
)
def test_settings_are_read_like_toml(text, setting):
    assert parse_setting(text) == setting


def test_a_setting_without_a_value_is_explained():
    with pytest.raises(ConfigError, match='has no "="'):
        parse_setting("strategy.concurrency")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "y"}, '"regression" is none'),
        ({"data": "digits", "reading": "text"}, "--reading is about presets"),
        ({"data": "digits", "experiment": "svm"}, "Give one"),
        ({"experiment": "flights", "data": "flights"}, "Give one"),
        ({"experiment": "fligts"}, 'nor data of that name. Did you mean "flights"'),
        ({"experiment": "some.toml", "num_clients": 3}, "--num-clients: for presets and tables"),
    ],
)
def test_options_that_exclude_each_other(options, words):
    with pytest.raises(ConfigError, match=words):
        ExperimentOptions(**options).prepare()


def test_the_delays_that_advise_names_are_all():
    assert set(re.findall(r"\w+", DELAY_NAMES)) - {"or"} == set(DELAYS)


@pytest.mark.parametrize("command", ["run", "compare", "certify", "live"])
def test_every_command_takes_the_same_options_of_a_table(cli, command):
    shown = cli(command, "--help").out
    assert all(option in shown for option in ("--data", "--target", "--client-column", "--problem", "--num-clients"))


def test_data_may_be_the_argument_or_an_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{'ab'[i % 2]},{i},{i * i % 7}" for i in range(40)]
    (tmp_path / "table.csv").write_text("\n".join(["shop,price,y", *rows]))
    named = ExperimentOptions("table.csv", target="y", client_column="shop", seed=3)
    chosen = named.prepare().experiment
    assert chosen == ExperimentOptions(data="table.csv", target="y", client_column="shop", seed=3).prepare().experiment
    assert named.default_file() == Path("runs/table-3.sqlite")
    assert (chosen.name, chosen.seed) == ("table", 3)


def test_rows_without_an_owner_are_assigned_at_random_and_it_is_said(cli, tmp_path, out):
    (tmp_path / "table.csv").write_text("\n".join(["price,y", *(f"{i},{i * i % 7}" for i in range(40))]))
    told = cli("run", tmp_path / "table.csv", "--target", "y", "--num-clients", 4, "--rounds", 1, "--out", out).out
    assert "rows are assigned to 4 clients at random" in told
