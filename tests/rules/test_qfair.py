"""q-fair weights: the paper's step by hand, FedAvg at q = 0, and what large q and small losses do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Merge, Work
from asyncfed.rules import Arrival, Mean, QFair
from asyncfed.strategies import FedAvg, FedBuff

WORK = Work(learning_rate=0.1, start_loss=True)
START = np.array([1.0, -1.0])


def arrival(ticket, loss, change, weight=0.5, start=START):
    change = np.array(change)
    return Arrival(ticket, ticket, weight, 0, WORK, 1, 4, start, start + change, metrics={"start_loss": loss})


def step(rule, *arrivals):
    merge = Merge(tuple(a.ticket for a in arrivals), tuple(a.weight for a in arrivals))
    return rule.step(rule.init(START, 5), START, arrivals, merge, 0)[0]


def test_the_papers_step_by_hand():
    """L = 10. Delta = -(4, 0), -(0, 2); h = 1 * 1 + 10 * 4 = 41, 1 * 4 + 10 * 1 = 14: x + (4, 2) / 55."""
    pair = arrival(0, 4.0, [0.1, 0.0]), arrival(1, 1.0, [0.0, 0.2])
    np.testing.assert_allclose(step(QFair(q=1.0), *pair), START + np.array([4.0, 2.0]) / 55.0, rtol=1e-9)


def test_with_q_2_and_a_smoothness_by_hand():
    """L = 5, q = 2. Delta = -5 * 16 * .1 = -8 and -5 * .2 = -1; h = 2 * 4 * .25 + 80 = 82, 2 * 1 + 5 = 7."""
    pair = arrival(0, 4.0, [0.1, 0.0]), arrival(1, 1.0, [0.0, 0.2])
    made = step(QFair(q=2.0, smoothness=5.0), *pair)
    np.testing.assert_allclose(made, START + np.array([8.0, 1.0]) / 89.0, rtol=1e-9)


@settings(max_examples=25)
@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=4), st.floats(0.1, 2.0))
def test_with_q_0_it_is_the_merge_itself(losses, weight):
    arrivals = [arrival(t, loss, [0.1 * t, 0.3], weight) for t, loss in enumerate(losses)]
    assert step(QFair(q=0.0), *arrivals).tobytes() == step(Mean(), *arrivals).tobytes()


@settings(max_examples=25)
@given(st.floats(0.0, 8.0), st.floats(1e-6, 1e6))
def test_equal_losses_keep_the_direction_and_never_lengthen_the_step(q, loss):
    changes = [[0.1, 0.0], [0.0, 0.3], [-0.2, 0.1]]
    fair = step(QFair(q=q), *[arrival(t, loss, c, 1 / 3) for t, c in enumerate(changes)]) - START
    plain = step(Mean(), *[arrival(t, loss, c, 1 / 3) for t, c in enumerate(changes)]) - START
    assert fair[0] * plain[1] == pytest.approx(fair[1] * plain[0], abs=1e-12)
    assert np.linalg.norm(fair) <= np.linalg.norm(plain) * (1 + 1e-9)


def test_a_large_q_listens_to_the_worst_client_only():
    made = step(QFair(q=80.0, smoothness=1e-9), arrival(0, 4.0, [0.1, 0.0]), arrival(1, 1.0, [0.0, 0.2]))
    np.testing.assert_allclose(made - START, [0.1, 0.0], atol=1e-6)


@pytest.mark.parametrize("loss", [0.0, -3.0, 1e300])
def test_losses_at_the_ends_of_the_scale_give_finite_models(loss):
    pair = arrival(0, loss, [0.1, 0.0]), arrival(1, 1.0, [0.0, 0.2])
    assert np.isfinite(step(QFair(q=0.5), *pair)).all()
    assert np.isfinite(step(QFair(q=5.0), *pair)).all()


def described(strategy):
    return af.Experiment(
        num_clients=6,
        data=af.data.PaperRegression(num_samples=120),
        strategy=strategy,
        budget=af.Budget(rounds=5),
    )


@pytest.mark.parametrize("host", [FedAvg(cohort_size=3, weighting="equal"), FedBuff(concurrency=3, buffer_size=2)])
def test_runs_with_q_0_are_the_hosts_and_others_are_not(host):
    host = af.replace(host, work=Work(learning_rate=0.01, start_loss=True))
    plain = af.run(described(host)).params
    assert af.run(described(af.replace(host, rule=QFair(q=0.0)))).params.tobytes() == plain.tobytes()
    assert af.run(described(af.replace(host, rule=QFair(q=2.0)))).params.tobytes() != plain.tobytes()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: QFair(q=-1.0), "rule.q is -1.0"),
        (lambda: QFair(smoothness=0.0), "rule.smoothness is 0.0"),
        (lambda: QFair().check(Work()), "weighs clients by their start_loss, which work does not ask for"),
        (lambda: QFair().check(Work(start="own", start_loss=True)), "work.start is own"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(ConfigError, match=words):
        make()
