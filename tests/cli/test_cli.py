"""Every command of the command line."""

import csv
import re
import sqlite3
import subprocess
import sys

import pytest

import asyncfed as af
from asyncfed.core.types import Budget
from asyncfed.presets import DELAYS, PRESETS, STRATEGIES
from asyncfed.strategies import FedAvg


@pytest.fixture
def toml(small, tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(af.to_toml(small()))
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "runs" / "run.sqlite"


@pytest.fixture
def done(small, out):
    """The file of a finished run."""
    af.run(small(), out=out).journal.close()
    return out


# ---- run -------------------------------------------------------------------------------------------------------


def test_run_writes_the_run_it_was_asked_for(cli, toml, out, small):
    result = cli("run", toml, "--out", out)
    assert (result.code, result.err) == (0, "")
    assert "finished: all 3 rounds are done" in result.out
    assert af.load(out).sha256 == af.run(small()).sha256


def test_run_without_out_writes_under_runs(cli, toml, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli("run", toml, "--seed", 4).code == 0
    assert af.load("runs/small-4.sqlite").experiment.seed == 4


def test_run_says_how_different_the_clients_are(cli, toml, out, small):
    assert " ".join(small().measure_heterogeneity().verdict.split()) in cli("run", toml, "--out", out).out


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


def test_run_draws(cli, toml, out, tmp_path):
    figure = tmp_path / "figures" / "run.png"
    assert cli("run", toml, "--out", out, "--plot", figure).code == 0
    assert figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["run.what", "file/run.png"])
def test_a_figure_that_cannot_be_written_loses_no_run(cli, toml, out, tmp_path, name):
    (tmp_path / "file").write_text("in the way")
    result = cli("run", toml, "--out", out, "--plot", tmp_path / name)
    assert result.code == 2
    assert "cannot be written" in result.err
    assert af.load(out).finished


# ---- resume, verify, show --------------------------------------------------------------------------------------


def test_resume_continues_an_interrupted_run(cli, small, out):
    experiment = small(budget=Budget(rounds=300))

    def give_up(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        af.run(experiment, out=out, watch=give_up)
    shown = cli("show", out)
    assert shown.code == 130
    assert "asyncfed resume" in shown.err
    unverified = cli("verify", out)
    assert unverified.code == 2
    assert "is not finished" in unverified.err
    assert cli("resume", out).code == 0
    assert af.load(out).sha256 == af.run(experiment).sha256


def test_resume_checks_the_experiment_it_is_given(cli, done, toml):
    assert cli("resume", done, "--experiment", toml).code == 0
    result = cli("resume", done, "--experiment", "svm")
    assert result.code == 2
    assert "Changed: " in result.err


def test_verify_replays(cli, done):
    result = cli("verify", done)
    assert result.code == 0
    assert result.out.endswith("evaluations: the same when replayed verified")
    with sqlite3.connect(done) as file:
        file.execute("UPDATE rounds SET energy = 0")
    file.close()
    result = cli("verify", done)
    assert result.code == 1
    assert "rounds: NOT THE SAME when replayed" in result.out
    assert result.out.endswith("NOT verified")


def test_show_tells_what_a_run_came_to(cli, done, tmp_path):
    result = cli("show", done, "--plot", tmp_path / "run.pdf")
    assert result.code == 0
    for words in ("finished", "objective", "Jain's index", "staleness", "energy"):
        assert words in result.out
    assert (tmp_path / "run.pdf").read_bytes().startswith(b"%PDF")


def test_show_prints_the_experiment_as_toml_that_can_be_run_again(cli, done, small):
    assert af.from_toml(cli("show", done, "--toml").raw) == small()


# ---- export ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["evaluations", "rounds", "events"])
def test_export_to_csv(cli, done, tmp_path, table):
    path = tmp_path / "new" / "table.csv"
    assert cli("export", done, path, "--table", table).code == 0
    run = af.load(done)
    columns = {
        "evaluations": run.journal.evaluation_columns(),
        "rounds": run.journal.columns("rounds"),
        "events": run.journal.event_columns(),
    }[table]
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == list(columns)
    assert len(rows) == len(next(iter(columns.values())))
    assert [row[0] for row in rows] == [str(value) for value in columns[header[0]]]


@pytest.mark.parametrize("table", ["evaluations", "rounds", "events"])
def test_export_to_parquet(cli, done, tmp_path, table):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "table.parquet"
    assert cli("export", done, path, "--table", table).code == 0
    read = parquet.read_table(path).to_pydict()
    if table == "rounds":
        assert read == af.load(done).journal.columns("rounds")
    assert len(next(iter(read.values()))) > 2


def test_export_knows_two_formats(cli, done, tmp_path):
    result = cli("export", done, tmp_path / "table.xlsx")
    assert result.code == 2
    assert 'ends in ".xlsx"; a table is written as .csv or .parquet' in result.err


# ---- certify ---------------------------------------------------------------------------------------------------


def test_certify_prints_the_factors_of_the_papers_regression(cli, tmp_path):
    result = cli("certify", "regression", "--seeds", "0", "--out", tmp_path)
    text = result.out
    assert result.code == 0
    assert "18.1x / 126.7x" in text
    assert "36.2x / 253.3x" in text
    assert "latest-average" in text
    assert not list(tmp_path.iterdir()), "nothing was run, so nothing is drawn"


def test_certify_says_that_the_theorem_does_not_apply_to_the_svm(cli, tmp_path):
    result = cli("certify", "svm", "--seeds", "1", "--rounds", "3", "--out", tmp_path)
    text = result.out
    assert result.code == 0
    assert "the hinge has a kink, so no L exists and no theorem of the paper applies" in text
    assert (tmp_path / "svm.png").stat().st_size > 10_000


def test_certify_reads_a_run(cli, done, tmp_path):
    result = cli("certify", done, "--out", tmp_path)
    assert result.code == 0
    assert "along the path guarantees" in result.out


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


# ---- compare, presets, the rest --------------------------------------------------------------------------------


def test_compare_runs_draws_and_tells(cli, toml, tmp_path):
    result = cli(
        "compare", toml, "--strategies", "afl_mixing, sync", "--seeds", 2, "--workers", 1, "--out", tmp_path / "c"
    )
    assert (result.code, result.err) == (0, "")
    assert "afl_mixing" in result.out
    assert "baseline" in result.out
    assert {p.name for p in (tmp_path / "c").iterdir()} == {"comparison.png", "time_to_target.png"}


def test_compare_refuses_a_strategy_that_does_not_exist(cli, toml, tmp_path):
    result = cli("compare", toml, "--strategies", "alf,sync", "--workers", 1, "--out", tmp_path / "c")
    assert result.code == 2
    assert 'no strategy "alf". Did you mean "afl"?' in result.err
    assert not (tmp_path / "c").exists()


def test_presets_lists_all_names(cli):
    result = cli("presets")
    assert result.code == 0
    for name in (*PRESETS, *STRATEGIES, *DELAYS):
        assert re.search(rf"\b{name}\b", result.out)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_prints_one_as_toml(cli, name):
    assert af.from_toml(cli("presets", name).raw) == PRESETS[name][1]()


def test_the_version(cli):
    result = cli("--version")
    assert (result.code, result.out) == (0, f"asyncfed {af.__version__}")


def test_without_a_command_there_is_help():
    done = subprocess.run([sys.executable, "-m", "asyncfed"], capture_output=True, text=True, timeout=60)
    assert "Usage" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
