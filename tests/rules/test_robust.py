"""Robust: an aggregate in place of the mean of a merge."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, replace
from asyncfed.core.types import Combine, Merge, Work
from asyncfed.rules import (
    Aggregate,
    Arrival,
    Average,
    CenteredClipping,
    Clipped,
    Ctma,
    GeometricMedian,
    Mean,
    Median,
    Momentum,
    MultiKrum,
    Optimised,
    Robust,
    RuleRun,
    TrimmedMean,
)
from asyncfed.strategies import FedAsync, FedAvg, FedBuff
from asyncfed.testing import check_rule


def arrival(ticket, change, weight=0.25, client=None, start=0.0):
    change = np.atleast_1d(np.asarray(change, float))
    begin = np.full_like(change, start)
    return Arrival(ticket, ticket if client is None else client, weight, 0, Work(), 1, 1, begin, begin + change)


def step(rule, arrivals, params=(0.0,), memory=None, keep=1.0, of="delta"):
    params = np.asarray(params, float)
    merge = Merge(tuple(a.ticket for a in arrivals), tuple(a.weight for a in arrivals), keep, of)
    return rule.step(rule.init(params, 8) if memory is None else memory, params, arrivals, merge, 0)


class FarthestOut(Config, tag_field="kind", tag="farthest out"):
    """Leaves out the longest vector: an aggregator that judges."""

    def tolerates(self, count):
        return 1

    def check(self, count):
        if count < 2:
            raise ConfigError("too few")

    def init(self, like):
        return {"calls": np.zeros((), np.int64)}

    def aggregate(self, vectors, weights, memory, ids):
        lengths = np.linalg.norm(vectors, axis=1)
        kept = np.arange(len(ids)) != lengths.argmax()
        return Aggregate(vectors[kept].mean(axis=0), kept, lengths), {"calls": memory["calls"] + 1}


def test_the_median_of_changes_counts_as_much_as_their_mean_would():
    """W = 0.75: 10 + 0.75 * median(1, 2, 900)."""
    merged, _, info = step(Robust(), [arrival(0, 1.0), arrival(1, 900.0), arrival(2, 2.0)], [10.0])
    assert (merged.tolist(), info) == ([11.5], {})


def test_models_are_compared_by_their_distance_from_the_present_model():
    """keep 0.5, W = 0.5: 10 + 0.5 * median(1, -3, 900)."""
    models = [arrival(0, 11.0, 1 / 6), arrival(1, 7.0, 1 / 6), arrival(2, 910.0, 1 / 6)]
    merged, _, _ = step(Robust(), models, [10.0], keep=0.5, of="model")
    assert merged == pytest.approx([10.5], rel=1e-15)


@pytest.mark.parametrize(("of", "keep"), [("delta", 1.0), ("delta", 0.5), ("model", 0.0), ("model", 0.25)])
@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9), st.floats(0.125, 1)), min_size=1, max_size=6))
@settings(deadline=None, max_examples=25)
def test_with_the_average_it_is_the_mean(of, keep, drawn):
    arrivals = [arrival(i, change, weight, start=start) for i, (change, start, weight) in enumerate(drawn)]
    merged, _, _ = step(Robust(aggregator=Average()), arrivals, [3.0], keep=keep, of=of)
    plain, _, _ = step(Mean(), arrivals, [3.0], keep=keep, of=of)
    assert merged == pytest.approx(plain, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("aggregator", [Median(), TrimmedMean(liars=1), Average()], ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_range_of_coordinates_at_a_time_changes_no_bit(aggregator, threads, monkeypatch):
    chance = np.random.default_rng(0)
    arrivals = [arrival(i, chance.normal(size=1000), weight, start=i) for i, weight in enumerate([0.1, 0.3, 0.2, 0.3])]
    params, whole = chance.normal(size=1000), []
    for chunk in (1000, 300):
        monkeypatch.setattr("asyncfed.rules.robust.CHUNK", chunk)
        monkeypatch.setattr("asyncfed.rules.compared_changes.CHUNK", chunk)
        monkeypatch.setattr("asyncfed.kernels.threads.SMALL", 1)
        for of, keep in (("delta", 1.0), ("model", 0.1)):
            run = RuleRun(Robust(aggregator=aggregator), params, 4, threads)
            merge = Merge((0, 1, 2, 3), tuple(a.weight for a in arrivals), keep, of)
            whole.append(run.step(params, arrivals, merge, 0)[0].tobytes())
    assert whole[:2] == whole[2:]
    arrivals[2].model[950] = np.nan
    run = RuleRun(Robust(aggregator=aggregator), params, 4, threads)
    merged, _ = run.step(params, arrivals, Merge((0, 1, 2, 3), (0.1, 0.3, 0.2, 0.3)), 0)
    assert np.isfinite(merged).all()


def test_too_few_leave_the_model_and_the_memory():
    rule = Robust(aggregator=FarthestOut())
    params, memory = np.array([1.0]), rule.init(np.array([1.0]), 2)
    merged, after, info = step(rule, [arrival(0, 5.0)], params, memory)
    assert (merged.tolist(), after, info) == ([1.0], memory, {"too_few": 1})


def test_a_merge_without_weight_leaves_the_model():
    merged, _, info = step(Robust(), [arrival(i, 5.0, weight=0.0) for i in range(3)])
    assert (merged.tolist(), info) == ([0.0], {"too_few": 3})


@pytest.mark.parametrize("lie", [np.inf, np.nan, -np.inf])
def test_what_is_not_finite_is_left_out(lie):
    arrivals = [arrival(0, [1.0, 1.0]), arrival(1, [lie, 1.0]), arrival(2, [3.0, 3.0]), arrival(3, [2.0, 2.0])]
    merged, _, _ = step(Robust(), arrivals, [0.0, 0.0])
    assert merged.tolist() == [1.5, 1.5]
    merged, _, info = step(Robust(), arrivals[:3], [0.0, 0.0])
    assert (merged.tolist(), info) == ([0.0, 0.0], {"too_few": 2})


def test_who_was_filtered_is_written_down_and_remembered():
    rule = Robust(aggregator=FarthestOut(), ageing=0.5)
    arrivals = [arrival(4, 1.0, client=0), arrival(7, -9.0, client=1), arrival(9, 3.0, client=9)]
    params, memory = np.zeros(1), rule.init(np.zeros(1), 2)
    assert rule.measure(memory, params, arrivals[1], None) == {"suspicion": 0.0}
    _, memory, info = step(rule, arrivals, params, memory)
    assert info == {"filtered": 1, "filtered/7": 9.0}
    _, memory, _ = step(rule, [arrival(11, 1.0, client=1), arrival(12, 2.0, client=9)], params, memory)
    # client 1: filtered, then kept: 0.5 of 1.5; client 9, unknown at the start: kept, then filtered: 1 of 1.5
    suspicions = [rule.measure(memory, params, arrival(20, 0.0, client=c), None)["suspicion"] for c in (0, 1, 9, 30)]
    assert suspicions == pytest.approx([0.0, 1 / 3, 2 / 3, 0.0])
    assert memory["aggregator/calls"] == 2


def test_a_client_may_speak_once():
    """Client 1 sends 9 (weight 0.2) and 18 (0.1): 12, counting 0.15 as one. Weights 0.1, 0.15, 0.1: the median is 3."""
    arrivals = [
        arrival(0, 2.0, 0.1, client=0),
        arrival(1, 9.0, 0.2, client=1),
        arrival(2, 3.0, 0.1, client=2),
        arrival(3, 18.0, 0.1, client=1),
    ]
    merged, _, _ = step(Robust(once_per_client=True), arrivals)
    assert merged == pytest.approx([0.5 * 3.0])
    merged, _, _ = step(Robust(aggregator=Average(), once_per_client=True), arrivals)
    assert merged == pytest.approx([0.5 * (0.1 * 2 + 0.15 * 12 + 0.1 * 3) / 0.35])
    merged, _, info = step(Robust(once_per_client=True), arrivals[:2] + arrivals[3:])
    assert (merged.tolist(), info) == ([0.0], {"too_few": 3})
    merged, _, info = step(Robust(aggregator=FarthestOut(), once_per_client=True), arrivals)
    assert info == {"filtered": 2, "filtered/1": 12.0, "filtered/3": 12.0}
    assert merged == pytest.approx([0.5 * 2.5])
    with pytest.raises(ConfigError, match="merges 10 at once of 2 clients"):
        Robust(once_per_client=True).check_merge(10, 2)
    Robust().check_merge(10, 2)


def test_it_goes_inside_of_what_wraps_rules():
    arrivals = [arrival(0, 1.0), arrival(1, 900.0), arrival(2, 2.0)]
    merged, _, info = step(Clipped(norm=0.5, rule=Robust()), arrivals)
    assert (merged.tolist(), info) == ([0.375], {"clipped": 3})
    rule = Optimised(rule=Robust(), optimiser=Momentum(b=0.5))
    params, memory, _ = step(rule, arrivals)
    params, _, _ = step(rule, arrivals, params, memory)
    assert params.tolist() == [1.5 + 2.25]


@pytest.mark.parametrize(
    "rule", [Robust(), Clipped(rule=Robust()), Optimised(rule=Clipped(rule=Robust()))], ids=["alone", "inside", "deep"]
)
def test_a_strategy_that_merges_too_few_is_refused(rule):
    message = r"median needs at least 3 updates at once to withstand 1 liar; there are 1.*buffer_size = 3 or more"
    with pytest.raises(ConfigError, match=message):
        FedAsync(rule=rule).check(10)
    FedBuff(buffer_size=3, rule=rule).check(10)
    with pytest.raises(ConfigError, match="collects at least 3"):
        FedBuff(buffer_size=2, rule=rule).check(10)


def test_a_cohort_counts_as_one_merge():
    FedAvg(cohort_size=5, rule=Robust(aggregator=TrimmedMean(liars=2))).check(10)
    with pytest.raises(ConfigError, match="trimmed_mean needs at least 7 updates at once to withstand 3 liars"):
        FedAvg(cohort_size=5, rule=Robust(aggregator=TrimmedMean(liars=3))).check(10)


def test_merges_that_it_cannot_make_are_refused():
    rule, arrivals = Robust(), [arrival(i, 1.0, weight=-0.1) for i in range(3)]
    with pytest.raises(ConfigError, match="weights of 0 or more"):
        step(rule, arrivals)
    merge = Merge((0,), (1.0,), combiner=Combine("latest"))
    with pytest.raises(ConfigError, match='merges by "latest"'):
        rule.step(rule.init(np.zeros(1), 1), np.zeros(1), arrivals, merge, 0)
    with pytest.raises(ConfigError, match=r"rule.ageing is 0.0; it must be above 0 and at most 1"):
        Robust(ageing=0.0)


EXPERIMENT = af.Experiment(
    num_clients=8,
    data=af.data.PaperRegression(num_samples=200),
    delays=af.delays.heavy_tailed(),
    strategy=FedBuff(concurrency=6, buffer_size=5, rule=Robust(aggregator=Median())),
    budget=af.Budget(updates=80),
)


AGGREGATORS = {
    "median": Median(),
    "trimmed_mean": TrimmedMean(liars=1),
    "geometric_median": GeometricMedian(),
    "multi_krum": MultiKrum(liars=1),
    "centered_clipping": CenteredClipping(),
    "ctma": Ctma(),
}


@pytest.mark.parametrize("aggregator", AGGREGATORS.values(), ids=AGGREGATORS)
def test_runs_are_written_and_verified_with_any_number_of_threads(aggregator, tmp_path, monkeypatch):
    monkeypatch.setattr("asyncfed.kernels.threads.SMALL", 1)
    experiment = replace(EXPERIMENT, strategy=replace(EXPERIMENT.strategy, rule=Robust(aggregator=aggregator)))
    assert af.from_toml(af.to_toml(experiment)) == experiment
    whole = af.run(experiment, out=tmp_path / "run.sqlite", threads=1)
    assert af.verify(tmp_path / "run.sqlite", threads=2).ok
    assert af.run(experiment, threads=2).sha256 == whole.sha256
    assert af.run(replace(experiment, strategy=replace(experiment.strategy, rule=Mean()))).sha256 != whole.sha256


@pytest.mark.parametrize("aggregator", AGGREGATORS.values(), ids=AGGREGATORS)
def test_it_passes_the_conformance_check(aggregator):
    check_rule(Robust(aggregator=aggregator), merge_size=6)
