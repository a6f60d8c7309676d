"""AsyncFedED: a trace by hand, a fresh change, no dependence on scale, and the steps of the next ticket."""

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.strategies import AsyncFedED

NINE_STEPS = Work(batch_size=1, steps=9)


def test_by_hand(ruled_hand_run):
    """lam = 1, eps = 1, target 1, kappa 2."""
    run = ruled_hand_run(AsyncFedED(concurrency=3, step_gain=2.0, work=NINE_STEPS), start=(0.0, 0.0))
    measured, said, x = run.arrive(0, [3.0, 4.0])
    assert (measured["moved_norm"], measured["change_norm"], said, x) == (0.0, 5.0, "merge", [3.0, 4.0])
    assert run.dispatch_of(0).work.steps == 11  # gamma = 0: 9 + floor(2)
    assert run.dispatch_of(1).work.steps == 9
    # Client 1: the model has moved by 5, its change is 2 long: gamma = 2.5, weight 1/3.5.
    _, said, x = run.arrive(1, [0.0, 2.0])
    assert said == "merge"
    assert x == pytest.approx([3.0, 4.0 + 2.0 / 3.5], rel=1e-15)
    assert run.dispatch_of(1).work.steps == 6  # 9 + floor(-3)
    # Client 0 again, from (3, 4): the model has moved by 2/3.5 and it changes by as much: gamma = 1, weight 1/2.
    _, _, x = run.arrive(0, [2.0 / 3.5, 0.0])
    assert x == pytest.approx([3.0 + 1.0 / 3.5, 4.0 + 2.0 / 3.5], rel=1e-14)
    assert run.dispatch_of(0).work.steps in (10, 11)  # floor of 0, if rounding leaves gamma at 1
    assert run.server.round == 1


def test_a_fresh_change_counts_lam_over_eps():
    assert AsyncFedED(server_lr=0.25, eps=0.5).weight(0.0, 3.0) == 0.5
    assert AsyncFedED(server_lr=0.25, eps=0.5).weight(0.0, 0.0) == 0.5  # and changes nothing
    assert AsyncFedED().weight(1.0, 0.0) == 0.0


@given(moved=st.floats(1e-3, 1e3), change=st.floats(1e-3, 1e3), power=st.integers(-20, 20))
@settings(max_examples=30)
def test_it_does_not_depend_on_scale(moved, change, power):
    """Both lengths times s: the same. The change alone times s: gamma is divided by s."""
    strategy, s = AsyncFedED(eps=0.5), 2.0**power
    assert strategy.weight(moved * s, change * s) == strategy.weight(moved, change)
    gamma = 1 / strategy.weight(moved, change) - 0.5
    assert 1 / strategy.weight(moved, change * s) - 0.5 == pytest.approx(gamma / s, rel=1e-6, abs=1e-9)


@given(steps=st.integers(1, 50), gamma=st.floats(0, 100), target=st.floats(0, 5), gain=st.floats(0, 20))
@settings(max_examples=30)
def test_there_is_always_a_step_and_never_more_than_asked_for(steps, gamma, target, gain):
    strategy = AsyncFedED(gamma_target=target, step_gain=gain, max_steps=60)
    after = strategy.next_steps(steps, gamma, 1.0)
    assert 1 <= after <= 60
    if gamma > target:
        assert after <= steps
    else:
        assert after >= min(60, steps)


def test_steps_of_a_client_that_does_not_change_anything():
    assert AsyncFedED().next_steps(7, moved_norm=1.0, change_norm=0.0) == 1
    assert AsyncFedED().next_steps(7, moved_norm=0.0, change_norm=0.0) == 8  # gamma = 0
    assert AsyncFedED(step_gain=0.0).next_steps(7, moved_norm=1.0, change_norm=0.0) == 7


def test_the_first_ticket_is_what_the_work_means(ruled_hand_run):
    run = ruled_hand_run(AsyncFedED(concurrency=2, work=Work(epochs=2, batch_size=4)), num_examples=(12, 5))
    run.arrive(0, [1.0])
    assert run.dispatch_of(0).work.steps == 7  # 2 epochs of 3 steps, and one more
    assert run.dispatch_of(1).work == Work(epochs=2, batch_size=4)


def test_threads_interruptions_and_replay(tiny, trusted):
    strategy = AsyncFedED(concurrency=4, work=Work(epochs=1, batch_size=4, learning_rate=0.01))
    delays = Delays(compute=Exponential(mean=1.0), dropout=0.05)
    trusted(tiny(clients=6, strategy=strategy, delays=delays, budget=Budget(updates=40)))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"server_lr": 0}, r"strategy\.server_lr is 0; it must be a positive number"),
        ({"eps": 0.0}, r"strategy\.eps is 0\.0; it must be a positive number"),
        ({"gamma_target": -1.0}, r"strategy\.gamma_target is -1\.0; it must be zero or a positive number"),
        ({"step_gain": inf}, r"strategy\.step_gain is inf"),
        ({"max_steps": 0}, r"strategy\.max_steps is 0; a ticket has at least 1 step"),
    ],
)
def test_bad_settings_are_refused(how, words):
    with pytest.raises(ConfigError, match=words):
        AsyncFedED(**how)
