"""The command communication."""

import pytest

from asyncfed.communication.problems import PROBLEMS
from asyncfed.core.record import replace


@pytest.fixture
def small_study(cli, tmp_path, monkeypatch):
    quicker = replace(PROBLEMS["regression"], rates=(0.025,), remaining=0.5, most_updates=200)
    monkeypatch.setitem(PROBLEMS, "regression", quicker)

    def run(*more):
        options = ["--strategies", "fedbuff", "--codecs", "top_k_ef", "--links", "1_mbit", "--seeds", 2]
        chosen = ["--problems", "regression", *options, "--workers", 1, "--out-dir", tmp_path / "out"]
        return cli("communication", *chosen, *more)

    return run


def test_it_writes_a_page_tables_and_pictures(small_study, tmp_path):
    result = small_study()
    assert (result.code, result.err) == (0, "")
    assert "2 strategies with codecs, on 1 links" in result.out
    assert "top-k 1 % with error feedback needs 20 times fewer bytes up" in result.out
    names = ("communication.html", "regression_costs.png", "regression_links.pdf", "results.csv", "claims.csv")
    for name in (*names, "results.json"):
        assert (tmp_path / "out" / name).stat().st_size > 0


def test_bad_input_is_refused_in_a_line(small_study):
    for options, words in (
        (("--codecs", "topk"), 'no codec "topk"'),
        (("--links", "3_mbit"), 'no link "3_mbit"'),
        (("--seeds", "0"), "seeds is 0"),
    ):
        result = small_study(*options)
        assert result.code == 2
        assert words in result.err
