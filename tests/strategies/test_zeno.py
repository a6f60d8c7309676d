"""Zeno++: whom it accepts, that lengths do not matter, its limits, a liar with and without it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Drop, Merge, Report, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.problems.linear import Linear
from asyncfed.rules import Arrival, RuleRun, TrustedDirection
from asyncfed.strategies import Zeno

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)
DELAYS = Delays(compute=Exponential(mean=1.0), dropout=0.05)
lengths = st.floats(1e-3, 1e3)


def decide(strategy, cosine, trusted_norm, change_norm):
    """What is decided of the first report."""
    server = Server(strategy, [1] * 6)
    first, *_ = server.start()
    numbers = {"cosine": cosine, "trusted_norm": trusted_norm, "change_norm": change_norm}
    return server.receive(Report(first.ticket, first.client, 1.0, 1.0, 1, numbers))[0]


def test_by_hand():
    """|v| = 2, |g| = 8: weight 1/4 of server_lr. gamma 1, rho 0.5: cos 0.5 is the least that is accepted."""
    zeno = Zeno(server_lr=0.5, rho=0.5)
    assert decide(zeno, 1.0, 2.0, 8.0) == Merge((0,), (0.125,), keep=1.0, of="delta")
    assert decide(zeno, 0.5, 2.0, 8.0) == Merge((0,), (0.125,), keep=1.0, of="delta")
    dropped = decide(zeno, 0.25, 2.0, 8.0)
    assert dropped == Drop(0, "score -1 is negative: cosine 0.25, trusted_norm 2")
    assert isinstance(decide(replace(zeno, eps=1.0), 0.25, 2.0, 8.0), Merge)
    assert isinstance(decide(zeno, float("nan"), 2.0, 8.0), Drop)


def test_zero_is_rejected():
    assert decide(Zeno(eps=5.0), 0.0, 2.0, 0.0) == Drop(0, "the change is zero")


@given(v=lengths, rho=st.floats(0, 3), gamma=st.floats(0.1, 3), eps=st.floats(0.01, 10))
def test_the_trusted_change_itself_and_its_opposite(v, rho, gamma, eps):
    zeno = Zeno(gamma=gamma, rho=rho, eps=eps)
    margin = 1e-9 * (gamma + rho) * (v * v + eps)
    same, opposite = (gamma - rho) * v * v + gamma * eps, eps - (1 + rho / gamma) * v * v
    if abs(same) > margin:
        assert isinstance(decide(zeno, 1.0, v, v), Merge) == (same >= 0)
    if abs(gamma * opposite) > margin:
        assert isinstance(decide(zeno, -1.0, v, v), Drop) == (opposite < 0)


@given(factor=st.floats(1e-150, 1e150), seed=st.integers(0, 100))
def test_the_length_of_a_change_does_not_matter(factor, seed):
    rng = np.random.default_rng(seed)
    start, change, trusted = rng.normal(size=(3, 4))

    def stepped(scale):
        rule = RuleRun(TrustedDirection(), np.zeros(4), 5)
        arrival = Arrival(0, 2, 0.0, 0, WORK, 1, 1, np.zeros(4), scale * change)
        measured = rule.measure(start, arrival, lambda params, *_: params + trusted)
        decided = decide(Zeno(eps=1e9), *(measured[name] for name in ("cosine", "trusted_norm", "change_norm")))
        return measured["cosine"], decided.weights[0] * scale * change

    (one, step), (other, scaled) = stepped(1.0), stepped(factor)
    assert other == pytest.approx(one, rel=1e-9, abs=1e-12)
    assert np.allclose(step, scaled, rtol=1e-9)
    assert np.linalg.norm(step) == pytest.approx(np.linalg.norm(trusted))


def test_numbers_are_finite_whatever_arrives():
    rule = RuleRun(TrustedDirection(), np.zeros(2), 5)
    for change in ([1e300, -1e300], [0.0, 0.0], [1e-320, 0.0]):
        arrival = Arrival(0, 2, 0.0, 0, WORK, 1, 1, np.zeros(2), np.array(change))
        assert np.isfinite(list(rule.measure(np.zeros(2), arrival, lambda params, *_: params + 1.0).values())).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"gamma": 0.0}, "strategy.gamma is 0.0; it must be a positive number"),
        ({"rho": -1.0}, "strategy.rho is -1.0; it must be zero or a positive number"),
        ({"eps": float("nan")}, "strategy.eps is nan"),
        ({"rho": 1.0}, "no update but zero can have a score"),
        ({"server_lr": 0.0}, "strategy.server_lr is 0.0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        Zeno(**settings)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match=r"strategy.trusted_client is 6; with 6 clients it is at most 5"):
        Zeno(trusted_client=6).check(6)
    with pytest.raises(ConfigError, match=r"strategy.concurrency is 6, but there are only 5 clients"):
        Zeno(concurrency=6).check(6)
    Zeno(concurrency=6, trusted_client="server").check(6)


class SignFlipping(Linear):
    """Some clients send ten times the opposite of what they computed."""

    def local_train_many(self, jobs, threads=1):
        starts = jobs.starts.copy()
        models = super().local_train_many(jobs, threads)
        for row, client in enumerate(jobs.clients):
            if client in (3, 4):
                models[row] = starts[row] - 10.0 * (models[row] - starts[row])
        return models


def test_who_sends_the_opposite_is_kept_out(tiny, events):
    work = replace(WORK, batch_size=8, learning_rate=0.05)
    strategy = Zeno(concurrency=4, refresh=1, server_lr=0.5, work=work)
    experiment = tiny(clients=8, strategy=strategy, delays=DELAYS, budget=Budget(updates=150))
    run = af.run(experiment, problem=SignFlipping(experiment.clients()))
    assert run.evaluations["objective"][-1] < 0.2 * run.evaluations["objective"][0]
    merged = [event.client for event in events(run, "merge")]
    assert not {3, 4} & set(merged[:20])  # at the optimum, directions mean nothing, and steps are short


def test_threads_interruptions_and_replay(tiny, trusted, events):
    strategy = Zeno(concurrency=4, trusted_client=1, refresh=3, rho=0.2, eps=1e-9, work=WORK)
    run = trusted(tiny(clients=7, strategy=strategy, delays=DELAYS, budget=Budget(updates=60), init="torch"))
    assert events(run, "drop")
