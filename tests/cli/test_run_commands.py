"""The commands run, resume and live."""

import sys

import pytest

import asyncfed as af
from asyncfed.core.types import Budget


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


def test_a_cluster_needs_ray(cli, toml, out, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    for command in (["run", toml, "--out", out], ["compare", toml, "--seeds", 1]):
        result = cli(*command, "--cluster", "auto")
        assert result.code == 2
        assert "pip install 'asyncfed[ray]'" in result.err
    assert not out.exists()
    refused = cli("run", toml, "--out", out, "--workers", 3)
    assert refused.code == 2
    assert "--workers 3 is for --cluster" in refused.err


def test_run_draws(cli, toml, out, tmp_path):
    figure = tmp_path / "figures" / "run.png"
    assert cli("run", toml, "--out", out, "--plot", figure).code == 0
    assert figure.read_bytes().startswith(b"\x89PNG")


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


@pytest.mark.parametrize("name", ["run.what", "file/run.png"])
def test_a_figure_that_cannot_be_written_loses_no_run(cli, toml, out, tmp_path, name):
    (tmp_path / "file").write_text("in the way")
    result = cli("run", toml, "--out", out, "--plot", tmp_path / name)
    assert result.code == 2
    assert "cannot be written" in result.err
    assert af.load(out).finished


@pytest.mark.slow
def test_the_must_see_command(cli, tmp_path):
    """`asyncfed live regression --num-clients 8` with one straggler; then its replay, figures and report."""
    path, plot, timeline = (tmp_path / name for name in ("live.sqlite", "run.png", "timeline.png"))
    how = ["--num-clients", 8, "--strategy", "afl_mixing", "--slow", "3=10", "--task-seconds", 0.005, "--rounds", 40]
    done = cli("live", "regression", *how, "--out", path, "--plot", plot, "--timeline", timeline)
    assert done.code == 0, done.err
    assert "all 40 rounds are done" in done.out
    for file in (plot, timeline):
        assert file.read_bytes().startswith(b"\x89PNG")
    assert "verified" in cli("replay", path).out
    run = af.load(path)
    others = [count for client, count in enumerate(run.participation()) if client != 3]
    assert run.participation()[3] < min(others)
    simulated = af.run(af.presets.regression(num_clients=8, strategy="afl_mixing", rounds=40))
    assert run.evaluations["objective"][-1] < 3 * simulated.evaluations["objective"][-1]
    page = cli("report", path, "--out", tmp_path / "page.html")
    assert page.code == 0, page.err
    assert cli("resume", path).code == 0  # it is finished: nothing happens
    assert cli("show", path, "--timeline", timeline).code == 0


def test_what_is_not_understood_is_explained(cli, tmp_path):
    wrong = cli("live", "--slow", "three", "--out", tmp_path / "x.sqlite")
    assert wrong.code == 2
    assert "write --slow 3=10" in wrong.err


@pytest.mark.parametrize("command", ["run", "live"])
def test_a_file_that_exists_is_refused_before_any_data_are_read(cli, out, tmp_path, command):
    out.parent.mkdir()
    out.write_text("somebody's work")
    refused = cli(command, tmp_path / "no_such_table.csv", "--target", "y", "--out", out)
    assert refused.code == 2
    assert "exists already, and nothing was overwritten" in refused.err
    assert refused.out == ""


def test_run_says_first_where_its_file_will_be(cli, toml, out):
    assert cli("run", toml, "--out", out).raw.replace("\n", "").startswith(f"run file: {out}")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--cluster", "auto"], "--cluster is for clients on a cluster. Add --engine ray"),
        (["--node", "1=10.0.0.7"], "--node is for clients on a cluster"),
        (["--clients-per-process", 2], "--clients-per-process is for clients on a cluster"),
        (["--engine", "flower"], 'There is no engine "flower"'),
        (["--engine", "ray", "--node", "10.0.0.7"], '--node "10.0.0.7" is not understood'),
        (["--engine", "ray", "--clients-per-process", 0], "clients_per_process is 0"),
    ],
)
def test_engines_and_their_options(cli, tmp_path, options, complaint):
    result = cli("live", "regression", *options, "--out", tmp_path / "x.sqlite")
    assert result.code == 2
    assert complaint in " ".join(result.err.split())
    assert not (tmp_path / "x.sqlite").exists()
