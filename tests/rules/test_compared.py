"""Each update compared with everybody's latest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.attacks import Liars, SignFlip
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Combine, Merge, Work
from asyncfed.rules import Arrival, Compared, Mean, Momentum, Optimised
from asyncfed.strategies import AFL, AsyncSGD, FedAsync, FedAvg, FedBuff
from asyncfed.testing import check_rule

STRATEGIES = {
    "fedavg": FedAvg(cohort_size=4),
    "fedbuff": FedBuff(concurrency=4, buffer_size=3),
    "fedasync": FedAsync(concurrency=4),
    "async_sgd": AsyncSGD(concurrency=4, server_lr=0.25),
    "mixing": AFL(concurrency=4, aggregate="mixing"),
    "latest": AFL(concurrency=4, aggregate="latest"),
}


def arrival(client, change, ticket=None, weight=1.0):
    return Arrival(
        *(client if ticket is None else ticket, client, weight, 0, Work(), 1, 1),
        *(np.zeros(1), np.asarray(change, float)),
    )


def steps(rule, *arrivals, num_clients=3, params=0.0):
    """The model, the memory and what was found, after each of these one by one."""
    params, memory, found = np.array([params]), rule.init(np.zeros(1), num_clients), []
    for one in arrivals:
        params, memory, info = rule.step(memory, params, [one], Merge((one.ticket,), (one.weight,)), 0)
        found.append((float(params[0]), info))
    return found, memory


def test_a_hand_computed_trace():
    """Held; merged with the second, both shortened to the shorter; then the table is {1, 2, 3}, m = 2, limit = 4."""
    found, memory = steps(
        Compared(), arrival(0, [1.0]), arrival(1, [2.0]), arrival(2, [3.0]), arrival(2, [-30.0], ticket=3)
    )
    assert found[0] == (0.0, {"held": 1})
    assert found[1] == (2.0, {"shortened": 1, "shortened/1": 2.0})
    assert found[2] == (5.0, {})
    # the table is {1, 2, -30}: m = 1, distances 0, 1 and 31, limit 4 * 1; the lie counts as 1
    assert found[3] == (6.0, {"filtered": 1, "filtered/3": 31.0 / 4.0})
    assert memory["filtered"].tolist() == [0.0, 0.0, 1.0]
    assert memory["seen"].tolist() == [0.0, 0.0, 1.9]


def test_suspicion_is_the_aged_share_of_filtered_updates():
    rule = Compared()
    _, memory = steps(rule, *(arrival(c, [1.0 + c]) for c in range(3)), arrival(2, [-30.0], ticket=3))
    assert rule.measure(memory, np.zeros(1), arrival(2, [1.0]), None) == {"suspicion": 1.0 / 1.9}
    assert rule.measure(memory, np.zeros(1), arrival(7, [1.0]), None) == {"suspicion": 0.0}


@pytest.mark.parametrize("lie", [np.nan, np.inf, -1e300])
def test_what_is_not_finite_or_absurd_counts_as_the_median(lie):
    found, _ = steps(Compared(), *(arrival(c, [1.0 + c]) for c in range(3)), arrival(2, [lie], ticket=3))
    assert np.isfinite(found[3][0])
    assert found[3][1]["filtered"] == 1
    assert abs(found[3][0] - found[2][0]) <= 3.0  # the median of honest changes


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4), st.floats(-1e9, 1e9))
def test_a_minority_moves_the_model_by_no_more_than_honest_changes_do(honest, lie):
    """Breakdown: with 4 honest clients in the table, one liar moves the model within honest changes and their limit."""
    rule = Compared(liars=2)
    arrivals = [arrival(c, [value]) for c, value in enumerate(honest)]
    found, _ = steps(rule, *arrivals, arrival(4, [1.0]), arrival(4, [lie], ticket=5), num_clients=5)
    reach = max(map(abs, honest))
    assert abs(found[5][0] - found[4][0]) <= 12 * reach * (1 + 1e-9)


def test_where_nothing_is_far_it_is_the_mean_to_the_last_bit():
    changes = [arrival(t % 3, [1.0 + 0.1 * (t % 3)], ticket=t, weight=0.1) for t in range(30)]
    found, _ = steps(Compared(factor=100.0), *changes)
    plain, info = np.zeros(1), None
    for one in changes[:2]:
        plain = plain + 0.1 * np.minimum(one.model, 1.0)
    for one in changes[2:]:
        plain, _, info = Mean().step({}, plain, [one], Merge((one.ticket,), (0.1,)), 0)
    assert info == {}
    assert found[-1][0] == pytest.approx(plain[0], rel=1e-14)


def test_the_mean_of_the_latest_models_is_that_of_afl():
    rule, combine = Compared(factor=100.0), Combine("latest_average", (("shares", (1,)), ("total", 3), ("forget", ())))
    params, memory = np.zeros(1), rule.init(np.zeros(1), 3)
    for ticket, change in enumerate([1.0, 2.0, 4.0, 2.0]):
        merge = Merge((ticket,), (1.0,), keep=0.0, of="model", combiner=combine)
        params, memory, _ = rule.step(memory, params, [arrival(ticket % 3, [change], ticket)], merge, 0)
    assert params.tolist() == pytest.approx([(2.0 + 1.0 + 4.0) / 3])


@pytest.mark.parametrize("rule", [Compared(), Compared(rule=Optimised(optimiser=Momentum()))], ids=["mean", "momentum"])
def test_it_is_a_rule(rule):
    check_rule(rule)


def test_fewer_clients_than_can_outvote_the_liars_are_refused():
    with pytest.raises(ConfigError, match="against 2 it needs 5 clients, and there are 4"):
        Compared(liars=2).check_merge(1, 4)
    for wrong in ({"liars": 0}, {"factor": 1.0}, {"ageing": 0.0}):
        with pytest.raises(ConfigError):
            Compared(**wrong)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_runs_withstand_a_liar_replay_and_resume(small, tmp_path, strategy):
    work = Work(epochs=2, batch_size=4, learning_rate=0.01)
    defended = af.replace(strategy, work=work, rule=Compared())
    attack = Liars(attack=SignFlip(scale=10.0), clients=(1,))
    honest = small(strategy=af.replace(strategy, work=work), budget=Budget(rounds=12))
    path = tmp_path / "run.sqlite"
    run = af.run(af.replace(honest, strategy=defended, attack=attack), out=path)
    reached = run.evaluations["objective"][-1]
    assert reached < 2 * run.problem.evaluate(af.run(honest).params)["objective"]
    assert sum(event.info.get("filtered", 0) for event in run.journal.event_rows() if event.kind == 2) > 3
    verification = af.verify(path)
    assert verification.ok, verification.lines
