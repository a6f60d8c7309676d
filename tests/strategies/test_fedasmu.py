"""FedASMU's server: a trace by hand, what its weight is between, and how it falls."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.strategies import FedASMU
from asyncfed.strategies.discounts import Polynomial


def test_by_hand(hand_run):
    """mu = lam = 1, sigma = 1, iota = 0: xi = 1/(sqrt(t) (tau + 1))."""
    run = hand_run(FedASMU(concurrency=3, power=1.0))
    assert run.arrive(0, 8.0) == (0, "merge", 4.0)  # t = 1: xi = 1, a = 1/2
    _, _, x = run.arrive(1, 0.0)  # t = 2, tau = 1: xi = 1/(2 sqrt 2)
    xi = 1 / (2 * 2**0.5)
    assert x == pytest.approx(4.0 / (1 + xi), rel=1e-15)
    assert run.arrive(0, 4.0)[0] == 1
    assert run.server.round == 1
    before = run.x
    _, _, x = run.arrive(2, 0.0)  # t = 4, tau = 3: xi = 1/8, a = 1/9
    assert x == pytest.approx(before * 8 / 9, rel=1e-15)


def test_with_other_coefficients():
    strategy = FedASMU(mixing=2.0, scale=3.0, power=0.5, offset=0.25)
    assert strategy.weight(merge=9, staleness=3) == 1.5 / 2.5  # xi = 3/(3 * 2) + 0.25 = 0.75; m = 1.5


coefficients = st.floats(0, 1e3)


@given(
    mixing=st.floats(1e-3, 1e3),
    scale=st.floats(1e-3, 1e3),
    power=st.floats(0, 5),
    offset=coefficients,
    merge=st.integers(1, 10**9),
    staleness=st.integers(0, 10**4),
)
@settings(max_examples=30)
def test_the_weight_is_from_zero_to_below_one_and_falls(mixing, scale, power, offset, merge, staleness):
    strategy = FedASMU(mixing=mixing, scale=scale, power=power, offset=offset)
    weight = strategy.weight(merge, staleness)
    assert 0 <= weight < 1
    assert strategy.weight(merge + 1, staleness) <= weight
    assert strategy.weight(merge, staleness + 1) <= weight
    assert weight >= mixing * offset / (1 + mixing * offset) * (1 - 1e-12)


@given(merge=st.integers(1, 10**6), staleness=st.integers(0, 1000), power=st.floats(0, 3), mixing=st.floats(0.1, 10))
@settings(max_examples=30)
def test_its_odds_are_the_polynomial_discount_over_the_root_of_time(merge, staleness, power, mixing):
    """a / (1 - a) = mu s(tau) / sqrt(t), s FedAsync's polynomial discount."""
    weight = FedASMU(mixing=mixing, power=power).weight(merge, staleness)
    expected = mixing * Polynomial(power=power).weight(staleness) / merge**0.5
    assert weight / (1 - weight) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"mixing": 0.0}, r"strategy\.mixing is 0\.0; it must be a positive number"),
        ({"scale": -1.0}, r"strategy\.scale is -1\.0; it must be zero or a positive number"),
        ({"offset": float("inf")}, r"strategy\.offset is inf"),
        ({"scale": 0.0}, "are both 0, so nothing would ever count"),
    ],
)
def test_bad_settings_are_refused(how, words):
    with pytest.raises(ConfigError, match=words):
        FedASMU(**how)
