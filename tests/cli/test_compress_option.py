"""--compress on the command line: what it puts in, what it saves, what is refused."""

import asyncfed as af
from asyncfed.presets import COMPRESSIONS
from asyncfed.uplinks import ErrorFeedback, TopK


def _bytes_up(cli, out, *more):
    said = cli("run", "regression", "--strategy", "fedbuff", "--rounds", 4, "--out", out, *more)
    assert said.code == 0, said.err
    return af.load(out)


def test_top_k_comes_with_error_feedback_and_sends_less(cli, tmp_path):
    plain = _bytes_up(cli, tmp_path / "plain.sqlite")
    less = _bytes_up(cli, tmp_path / "less.sqlite", "--compress", "top_k")
    assert less.experiment.strategy.work.uplink == (ErrorFeedback(codec=TopK(fraction=0.01)),)
    assert less.rounds["bytes_up"][-1] < plain.rounds["bytes_up"][-1] / 5
    assert cli("verify", tmp_path / "less.sqlite").code == 0


def test_every_name_runs(cli, tmp_path):
    for name, uplink in COMPRESSIONS.items():
        run = _bytes_up(cli, tmp_path / f"{name}.sqlite", "--compress", name)
        assert run.experiment.strategy.work.uplink == (uplink,)


def test_a_name_that_there_is_not_is_refused(cli):
    said = cli("run", "--compress", "topk")
    assert said.code == 2
    assert 'no way to compress called "topk". Did you mean "top_k"' in said.err
