"""Liars from the command line."""

import pytest

import asyncfed as af


def test_attacks_are_listed_and_have_cards(cli):
    said = cli("list", "attacks").raw
    for kind in ("sign_flip", "little_is_enough", "slow_poison", "backdoor"):
        assert f"\n{kind} " in said
    card = cli("card", "inner_product").raw
    assert card.startswith("Inner product manipulation")
    assert "Knows: the data of all liars" in card


def test_a_run_with_liars_says_how_much_they_had(cli, tmp_path):
    out = tmp_path / "run.sqlite"
    said = cli("run", "regression", "--rounds", 3, "--attack", "sign_flip", "--liars", "0.2", "--out", out)
    assert said.code == 0
    assert "2 of 10 clients lie:" in said.out
    assert af.load(out).experiment.attack == af.Liars(attack=af.attacks.SignFlip(), share=0.2)
    assert "2 of 10 clients lie:" in cli("show", out).out
    page = cli("report", out, "--out", tmp_path / "page.html")
    assert page.code == 0
    assert "2 of 10 clients lie:" in (tmp_path / "page.html").read_text()
    assert cli("verify", out).code == 0


def test_settings_of_the_attack_and_a_number_of_liars(cli, tmp_path):
    out = tmp_path / "run.sqlite"
    options = ("--attack", "scaling", "--liars", 3, "--set", "attack.attack.factor=2.5")
    assert cli("run", "regression", "--rounds", 2, *options, "--out", out).code == 0
    assert af.load(out).experiment.attack == af.Liars(attack=af.attacks.Scaling(factor=2.5), count=3)


def test_three_in_ten_lie_if_nobody_says_how_many(cli, tmp_path):
    out = tmp_path / "run.sqlite"
    assert cli("run", "regression", "--rounds", 2, "--attack", "zero_update", "--out", out).code == 0
    assert af.load(out).experiment.attack.share == 0.3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--attack", "sign_flop"), 'no attack of kind "sign_flop". Did you mean "sign_flip"'),
        (("--liars", "3"), "nobody says how they lie"),
        (("--attack", "sign_flip", "--liars", "some"), "it must be a share such as 0.3"),
        (("--attack", "sign_flip", "--liars", "10"), "at least one must be honest"),
        (("--attack", "sign_flip", "--liars", "1.5"), "below 1"),
    ],
)
def test_what_is_wrong_is_named(cli, options, words):
    said = cli("run", "regression", "--rounds", 2, *options)
    assert said.code != 0
    assert words in said.err


def test_strategies_are_compared_under_attack(cli):
    compared = ("compare", "regression", "--strategies", "afl,fedasync", "--seeds", 2, "--rounds", 3)
    said = cli(*compared, "--attack", "sign_flip", "--liars", "1", "--workers", 1)
    assert said.code == 0
