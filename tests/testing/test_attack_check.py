"""`check_attack`: all that is shipped passes, and each fault is named."""

import numpy as np
import pytest

from asyncfed import Config
from asyncfed.attacks import LabelFlip, Lying, Mimic, SlowPoison
from asyncfed.registry import kinds
from asyncfed.testing import check_attack

SHIPPED = [kind for kind, made in kinds("attack").items() if made.__module__.startswith("asyncfed.")]


@pytest.mark.parametrize("kind", SHIPPED)
def test_all_that_is_shipped_passes(kind):
    check_attack(kinds("attack")[kind]())


@pytest.mark.parametrize("attack", [Mimic(knowledge="all"), SlowPoison(attack=LabelFlip())])
def test_other_settings_pass(attack):
    check_attack(attack)


def test_every_card_says_what_cards_of_attacks_say():
    for kind in SHIPPED:
        card = __import__(kinds("attack")[kind].__module__, fromlist=["x"]).__doc__
        places = [card.find(f"\n{words}:") for words in ("Sends", "Equation", "Knows", "Paper", "Aims at")]
        assert -1 not in places, kind
        assert places == sorted(places), kind


class Plain(Lying, Config, tag_field="kind", tag="plain"):
    def lie(self, view):
        return view.change


def faulty(**members):
    return type("Faulty", (Plain,), {"__module__": __name__, **members}, tag="faulty")()


def writes(self, view):
    view.change[0] = 1.0
    return view.change


def counts(self, view, seen=[]):  # noqa: B006
    seen.append(1)
    return view.change + len(seen)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"lie": writes}, "lie changed view.change in place"),
        ({"lie": counts}, "not repeatable"),
        ({"lie": lambda self, view: view.change[:3]}, "shape"),
        ({"lie": lambda self, view: view.change.astype(np.float16)}, "float16"),
        ({"lie": lambda self, view: view.change * np.inf}, "not finite"),
        ({"lie": lambda self, view: view.coalition()[0]}, "it uses data of clients"),
        ({"delay_factor": lambda self, key: 0.5}, "held back"),
        ({"knows": "everything"}, "knows is"),
    ],
)
def test_each_fault_is_named(members, words, monkeypatch):
    monkeypatch.setattr("asyncfed.testing.attack_check.check_part", lambda *_: None)
    with pytest.raises(AssertionError, match=words):
        check_attack(faulty(**members))
