import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.privacy.planning import plan_noise


def test_noise_and_epsilon_follow_from_each_other():
    for mode, more in (("central", {}), ("local", {}), ("tree", {"releases": 64, "separation": 3})):
        planned = plan_noise(mode, 10, 1e-5, epsilon=2.0, **more)
        assert plan_noise(mode, 10, 1e-5, multiplier=planned.multiplier, **more).epsilon == pytest.approx(2.0)
        grown = dict(planned.growth)
        assert grown[10] == pytest.approx(2.0)
        assert list(grown.values()) == sorted(grown.values())


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"mode": "central"}, r"either epsilon \(--epsilon\) or the noise \(--noise\)"),
        ({"mode": "central", "epsilon": 1.0, "multiplier": 1.0}, "either epsilon .* or the noise"),
        ({"mode": "tree", "epsilon": 1.0}, "--releases"),
        ({"mode": "local", "epsilon": 1.0, "releases": 9}, "about trees"),
        ({"mode": "central", "epsilon": 1.0, "participations": 0}, "participations is 0"),
    ],
)
def test_what_says_too_little_or_too_much_is_refused(arguments, word):
    with pytest.raises(ConfigError, match=word):
        plan_noise(**{"participations": 1, "delta": 1e-5, **arguments})
