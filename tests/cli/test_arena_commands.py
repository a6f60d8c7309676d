"""The command arena."""

import pytest

from asyncfed.arena.arena import QUICK_SEEDS, QUICK_TRIALS, SEEDS, TRIALS

ONE_CELL = ("--problems", "quadratic", "--delays", "equal", "--splits", "iid", "--strategies", "fedbuff")


@pytest.fixture
def small_arena(cli, tmp_path):
    return lambda *more: cli(
        "arena", *ONE_CELL, "--seeds", 1, "--trials", 1, "--workers", 1, "--out-dir", tmp_path / "out", *more
    )


def test_it_writes_a_page_tables_and_a_picture(small_arena, tmp_path):
    result = small_arena()
    assert (result.code, result.err) == (0, "")
    assert "2 strategies, 1 cells" in result.out
    for name in ("arena.html", "arena.png", "results.csv", "results.json"):
        assert (tmp_path / "out" / name).stat().st_size > 100
        assert name in result.out


def test_bad_input_is_refused_in_a_line(small_arena):
    for options, words in (
        (["--strategies", "fedbuf"], 'There is no strategy "fedbuf"'),
        (["--seeds", "0"], "seeds is 0"),
        (["--workers", "0"], "0"),
    ):
        result = small_arena(*options)
        assert result.code == 2
        assert words in result.err


def test_ctrl_c_says_how_to_go_on(small_arena, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("asyncfed.arena.arena.run_arena", interrupt)
    result = small_arena()
    assert result.code == 130
    assert "the same command goes on" in result.err


def test_help_says_how_many_seeds_and_trials_there_are(cli):
    shown = cli("arena", "--help").out
    assert f"{SEEDS}; {QUICK_SEEDS} with --quick" in shown
    assert f"{TRIALS}; {QUICK_TRIALS} with --quick" in shown
