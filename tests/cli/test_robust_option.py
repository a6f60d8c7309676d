"""--robust on the command line: what is said, what is put in, what is refused."""

import pytest

import asyncfed as af
from asyncfed.rules import Compared

SAID = "robust: each update is compared with the latest of all 10 clients; up to 3 liars among them are withstood"
LIE = ("--attack", "sign_flip", "--liars", 0.3, "--set", "attack.attack.scale=10.0")


def words_of(text):
    """As one line, however wide the terminal was."""
    return " ".join(text.split())


def test_a_run_says_what_it_is_given_and_who_was_filtered(cli, tmp_path):
    out = tmp_path / "run.sqlite"
    options = ("regression", "--strategy", "fedasync", "--rounds", 20, *LIE)
    said = cli("run", *options, "--robust", "--out", out)
    assert said.code == 0
    assert SAID in words_of(said.out + said.err)
    assert "Updates that had no part in the model" in said.out
    assert "it was far from the" in said.out
    run = af.load(out)
    assert run.experiment.strategy.rule == Compared(liars=3)
    shown = cli("show", out)
    assert "Updates that had no part in the model" in shown.out
    assert cli("verify", out).code == 0
    undefended = cli("run", *options, "--out", tmp_path / "plain.sqlite")
    assert SAID not in words_of(undefended.out + undefended.err)
    assert run.evaluations["objective"][-1] < af.load(tmp_path / "plain.sqlite").evaluations["objective"][-1] / 100


def test_compare_says_it_and_defends_every_strategy(cli, tmp_path):
    options = ("regression", "--strategies", "fedasync,fedbuff", "--rounds", 4, "--seeds", 1, "--workers", 1, *LIE)
    said = cli("compare", *options, "--robust", "--out-dir", tmp_path)
    assert said.code == 0
    assert words_of(said.out + said.err).count(SAID) == 2
    assert "DIVERGED" not in said.out


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--strategy", "zeno"), "robust needs a strategy that takes a rule, and zeno takes none"),
        (("--num-clients", 2), "robust needs at least 3 clients, and there are 2"),
        (("--strategy", "fedbuff", "--set", "strategy.rule.kind=compared"), "is a defence already"),
    ],
    ids=["no rule", "two clients", "twice"],
)
def test_what_cannot_be_defended_is_refused_with_the_reason(cli, tmp_path, options, why):
    out = tmp_path / "run.sqlite"
    said = cli("run", "regression", *options, "--robust", "--out", out)
    assert said.code == 2
    assert why in words_of(said.err)
    assert not out.exists()


def test_other_commands_do_not_have_it(cli):
    for command in ("advise", "fairness"):
        assert cli(command, "regression", "--robust").code == 2
