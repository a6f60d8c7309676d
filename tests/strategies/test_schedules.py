from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.strategies.schedules import ConstantRate, DelayAware

WORK = Work(learning_rate=0.5, decay=0.25)


@given(st.integers(0, 1000), st.none() | st.floats(0, 1e9))
def test_a_constant_rate_leaves_the_work_alone(round, spread):
    assert ConstantRate().plan(WORK, round, spread) is WORK


@given(
    penalty=st.floats(0, 10),
    spread=st.none() | st.floats(0, 1e6),
    initial=st.floats(0, 1e3),
    round=st.integers(0, 10_000),
)
def test_the_papers_rate(penalty, spread, initial, round):
    seconds = initial if spread is None else spread
    damped = 0.5 / (1 + penalty * seconds)
    plans = {
        over: DelayAware(delay_penalty=penalty, over=over, initial_spread=initial).plan(WORK, round, spread)
        for over in ("epoch", "round", "nothing")
    }
    assert plans["nothing"].learning_rate == pytest.approx(damped)
    assert plans["round"].learning_rate == pytest.approx(damped / sqrt(round + 1))
    assert plans["epoch"].learning_rate == pytest.approx(damped)
    # over the epochs the client itself divides by sqrt(e + 1); otherwise its own decay stays
    assert [plans[over].decay for over in ("epoch", "round", "nothing")] == [0.5, 0.25, 0.25]


@pytest.mark.parametrize("name", ["delay_penalty", "initial_spread"])
def test_negative_settings_are_refused(name):
    with pytest.raises(ConfigError, match=rf"schedule\.{name} is -1\.0; it must be zero or positive"):
        DelayAware(**{name: -1.0})
