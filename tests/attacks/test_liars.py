"""Who lies: by share, count or name, decided by the seed."""

import pytest

import asyncfed as af
from asyncfed.attacks import Liars, SignFlip
from asyncfed.errors import ConfigError


def lying(**who):
    return Liars(attack=SignFlip(), **who)


def test_the_seed_decides_who_lies_and_a_larger_share_keeps_the_liars_of_a_smaller_one():
    some, more = lying(share=0.2).choose(20, seed=3), lying(share=0.45).choose(20, seed=3)
    assert len(some) == 4
    assert len(more) == 9
    assert set(some) < set(more)
    assert list(more) == sorted(more)
    assert lying(share=0.2).choose(20, seed=4) != some
    assert lying(count=4).choose(20, seed=3) == some


@pytest.mark.parametrize(("share", "of", "count"), [(0.0, 10, 0), (0.01, 10, 1), (0.25, 10, 3), (0.3, 4, 1)])
def test_a_share_is_rounded_to_whole_clients_and_one_that_is_not_zero_has_a_liar(share, of, count):
    assert len(lying(share=share).choose(of, seed=0)) == count


@pytest.mark.parametrize(
    ("who", "words"),
    [
        ({}, "one says who lies; none is set"),
        ({"share": 0.2, "count": 1}, "share and count is set"),
        ({"share": 1.0}, "below 1"),
        ({"count": -1}, "0 or more"),
        ({"clients": (1, 1)}, "twice"),
    ],
)
def test_it_says_what_is_wrong_with_a_description(who, words):
    with pytest.raises(ConfigError, match=words):
        lying(**who)


@pytest.mark.parametrize(
    ("who", "words"),
    [
        ({"clients": (5,)}, "numbered 0 to 4"),
        ({"clients": (-1,)}, "numbered 0 to 4"),
        ({"count": 5}, "at least one must be honest"),
        ({"share": 0.95}, "at least one must be honest"),
    ],
)
def test_it_says_what_is_wrong_with_these_clients(who, words):
    with pytest.raises(ConfigError, match=words):
        lying(**who).choose(5, seed=0)


def test_an_experiment_with_liars_is_written_and_read_and_one_without_says_nothing_of_them():
    honest = af.presets.regression(rounds=2)
    attacked = af.replace(honest, attack=Liars(attack=SignFlip(scale=4.0), clients=(1, 3)))
    assert "attack" not in af.to_toml(honest)
    assert af.from_toml(af.to_toml(attacked)) == attacked
    with pytest.raises(ConfigError, match=r"\[attack.attack\] has no key `scal`. Did you mean"):
        af.from_toml(af.to_toml(attacked).replace("scale", "scal"))
    with pytest.raises(ConfigError, match=r'attack\.attack\.kind is "sign_flop"'):
        af.from_toml(af.to_toml(attacked).replace("sign_flip", "sign_flop"))
