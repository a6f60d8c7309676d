"""The commands compare, certify and reproduce."""


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


def test_compare_runs_draws_and_tells(cli, toml, tmp_path):
    result = cli(
        "compare", toml, "--strategies", "afl_mixing, sync", "--seeds", 2, "--workers", 1, "--out-dir", tmp_path / "c"
    )
    assert (result.code, result.err) == (0, "")
    assert "afl_mixing" in result.out
    assert "baseline" in result.out
    assert {p.name for p in (tmp_path / "c").iterdir()} == {"comparison.png", "time_to_target.png"}


def test_compare_refuses_a_strategy_that_does_not_exist(cli, toml, tmp_path):
    result = cli("compare", toml, "--strategies", "alf,sync", "--workers", 1, "--out-dir", tmp_path / "c")
    assert result.code == 2
    assert 'no strategy "alf". Did you mean "afl"?' in result.err
    assert not (tmp_path / "c").exists()
