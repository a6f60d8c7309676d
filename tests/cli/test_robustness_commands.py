"""The command robustness."""

import pytest

ONE_SCENARIO = ["--problems", "regression", "--splits", "iid", "--delays", "equal", "--defences", "median"]


@pytest.fixture
def small_study(cli, tmp_path):
    def run(*more):
        options = ["--attacks", "sign_flip", "--shares", "0.3", "--seeds", 1, "--workers", 1]
        return cli("robustness", *ONE_SCENARIO, *options, "--out-dir", tmp_path / "out", *more)

    return run


def test_it_writes_a_page_tables_and_a_picture(small_study, tmp_path):
    result = small_study()
    assert (result.code, result.err) == (0, "")
    assert "4 cells in 1 scenarios, 1 seeds" in result.out
    for name in ("robustness.html", "robustness.png", "results.csv", "break_points.csv", "costs.csv", "results.json"):
        assert (tmp_path / "out" / name).stat().st_size > 0


def test_bad_input_is_refused_in_a_line(small_study):
    for options, words in (
        (("--attacks", "sign_flop"), 'no attack "sign_flop"'),
        (("--shares", "a third"), "write numbers between 0 and 0.5"),
        (("--shares", "0.9"), "shares has 0.9"),
        (("--seeds", "0"), "seeds is 0"),
    ):
        result = small_study(*options)
        assert result.code == 2
        assert words in result.err
