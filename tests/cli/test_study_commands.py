"""The commands compare, certify and reproduce; compare at work is in `test_first_user_tasks`."""

import pytest


def test_certify_prints_the_factors_of_the_papers_regression(cli, tmp_path):
    result = cli("certify", "regression", "--seeds", "0", "--out-dir", tmp_path)
    text = result.out
    assert result.code == 0
    assert "18.1x / 126.7x" in text
    assert "36.2x / 253.3x" in text
    assert "latest-average" in text
    assert not list(tmp_path.iterdir()), "nothing was run, so nothing is drawn"


def test_certify_says_that_the_theorem_does_not_apply_to_the_svm(cli, tmp_path):
    result = cli("certify", "svm", "--seeds", "1", "--rounds", "3", "--out-dir", tmp_path)
    text = result.out
    assert result.code == 0
    assert "the hinge has a kink, so no L exists and no theorem of the paper applies" in text
    assert (tmp_path / "svm.png").stat().st_size > 10_000


def test_certify_reads_a_run(cli, done, tmp_path):
    result = cli("certify", done, "--out-dir", tmp_path)
    assert result.code == 0
    assert "along the path guarantees" in result.out


def test_compare_refuses_a_strategy_that_does_not_exist(cli, toml, tmp_path):
    result = cli("compare", toml, "--strategies", "alf,sync", "--workers", 1, "--out-dir", tmp_path / "c")
    assert result.code == 2
    assert 'no strategy "alf". Did you mean "afl"?' in result.err
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target-loss", 1, "--target-accuracy", 0.9], "are both given"),
        (["--metric", "test_loss", "--target-accuracy", 0.9], "--metric test_loss is no accuracy; give --target-loss"),
        (["--metric", "accuracy", "--target-loss", 0.9], "--metric accuracy is no loss; give --target-accuracy"),
        (["--target-accuracy", 0.9], 'no metric "accuracy"'),
        (["--metric", "objectve"], 'no metric "objectve". Did you mean "objective"?'),
        (["--target-loss", -1], "must be positive"),
    ],
)
def test_compare_refuses_targets_that_make_no_sense(cli, toml, tmp_path, options, words):
    result = cli("compare", toml, "--strategies", "afl,sync", "--workers", 1, "--out-dir", tmp_path / "c", *options)
    assert result.code == 2
    assert words in result.err


def test_explain_speedup(cli):
    result = cli("explain", "speedup", "--times", "900x10", "--times", "100x60", "--concurrency", 10)
    assert result.code == 0
    assert "1,000 clients, 10 at work at once" in result.out
    assert "nobody waits 15 " in result.out
    assert "rounds wait for all 42.57 " in result.out
    assert "2.84x" in result.out


def test_explain_speedup_refuses_what_is_no_time(cli):
    result = cli("explain", "speedup", "--times", "10")
    assert result.code == 2
    assert 'times are "10"; give clients and seconds as 900x10' in result.err


def test_fairness_prints_draws_and_writes_what_selections_buy_and_cost(cli, tmp_path):
    options = ["--num-clients", 6, "--rounds", 4, "--seeds", 2, "--selections", "fair,minimum", "--workers", 1]
    result = cli("fairness", *options, "--out-dir", tmp_path)
    assert result.code == 0
    assert "unequal:" in result.out
    assert "minimum" in result.out
    assert "Bought:" in result.out
    assert (tmp_path / "fairness.png").stat().st_size > 10_000
    assert (tmp_path / "fairness.csv").read_text().startswith("selection,seed,verdict,time_to_target")
    assert '"baseline": "uniform"' in (tmp_path / "fairness.json").read_text()


def test_fairness_refuses_a_selection_that_does_not_exist(cli, tmp_path):
    result = cli("fairness", "--selections", "ort", "--workers", 1, "--out-dir", tmp_path / "f")
    assert result.code == 2
    assert 'no selection "ort". Did you mean "oort"' in result.err
    assert not (tmp_path / "f").exists()
