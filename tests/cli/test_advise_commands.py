"""The command advise."""

import pytest
from tests.advice.conftest import make_short, small_experiment

import asyncfed as af

pytest.importorskip("optuna", reason="the extra `advise` is not installed")


@pytest.fixture
def advised(cli, tmp_path, monkeypatch):
    """Advice on a small experiment, two strategies only."""
    monkeypatch.chdir(tmp_path)
    make_short(monkeypatch)
    (tmp_path / "small.toml").write_text(af.to_toml(small_experiment()))

    def call(*more):
        return cli(
            *("advise", "small.toml", "--strategies", "fedasync", "--seeds", 2, "--budget", 8, "--workers", 1),
            *("--out-dir", "advice", *more),
        )

    return call


def test_it_recommends_and_writes_a_page_and_an_experiment_that_runs(cli, advised, tmp_path):
    result = advised()
    assert (result.code, result.err) == (0, "")
    assert "Recommended: " in result.out
    assert "finalists (* recommended)" in result.out
    assert "page: advice/advice.html" in result.out
    assert {path.name for path in (tmp_path / "advice").iterdir()} == {"advice.html", "recommended.toml", "trials"}
    page = (tmp_path / "advice" / "advice.html").read_text()
    assert "beats synchronous FedAvg with its own best settings" in page
    assert "What the target costs" in page
    again = cli("run", "advice/recommended.toml", "--set", "budget.updates=20", "--out", "run.sqlite")
    assert again.code == 0


def test_bad_input_is_refused_in_a_line(advised, tmp_path):
    for options, words in (
        (["--objective", "speed"], "speed"),
        (["--progress", "2"], "progress is 2.0; it must be above 0 and below 1"),
        (["--delays", "none.csv"], "none.csv cannot be read"),
        (["--delays", "slow"], 'There are no delays "slow"'),
        (["--budget", "0"], "budget is 0.0; it must be a positive number of virtual seconds"),
    ):
        result = advised(*options)
        assert result.code == 2
        assert words in result.err
        assert "Traceback" not in result.err
    assert not (tmp_path / "advice").exists()


def test_ctrl_c_leaves_it_resumable_and_says_so(advised, monkeypatch):
    def interrupt(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("asyncfed.api.advise", interrupt)
    result = advised()
    assert result.code == 130
    assert "what was simulated is kept in advice, and the same command continues" in result.err
