"""The factors of a cluster are those of the traces: lasting, correlated, now and then a straggler."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.delays import (
    ClusterVariation,
    Constant,
    Delays,
    Exponential,
    cluster,
    cluster_job,
    estimate_durations,
    expected_durations,
)
from asyncfed.delays.delay_profiles import SPREAD_OF_JOBS
from asyncfed.testing import check_delay

EVEN = ClusterVariation(spread=0.0, noise=Constant(value=0.0), split_share=0.0, straggler_share=0.0)


def durations(delays: Delays, num_clients: int, turns: int, seed: int = 0) -> np.ndarray:
    """The seconds of every client, turn by turn: client c has ticket turn * num_clients + c."""
    model = delays.bind(num_clients, seed)
    return np.array(
        [
            [model.timing(client, turn * num_clients + client, Work(), 10).compute for client in range(num_clients)]
            for turn in range(turns)
        ]
    )


def lag_one(seconds: np.ndarray) -> np.ndarray:
    """The lag-1 autocorrelation of each client's logarithms."""
    logs = np.log(seconds) - np.log(seconds).mean(axis=0)
    return (logs[1:] * logs[:-1]).mean(axis=0) / (logs**2).mean(axis=0)


@pytest.mark.parametrize("quantile", SPREAD_OF_JOBS)
def test_workers_of_a_job_differ_as_the_traces_say(quantile: float) -> None:
    seconds = durations(cluster_job(quantile), num_clients=400, turns=3)
    between = np.median(seconds.std(axis=1) / seconds.mean(axis=1))
    assert between == pytest.approx(SPREAD_OF_JOBS[quantile], rel=0.1)


@pytest.mark.parametrize(("quantile", "low", "high"), [(0.05, 1.01, 1.05), (0.5, 1.03, 1.4), (0.95, 1.5, 4.5)])
def test_a_workers_slowest_steps_are_as_slow_as_the_traces_say(quantile: float, low: float, high: float) -> None:
    seconds = durations(cluster_job(quantile), num_clients=8, turns=120)
    ratios = np.quantile(seconds, 0.99, axis=0) / np.median(seconds, axis=0)
    assert low < np.median(ratios) < high


def test_the_profile_has_the_correlation_and_the_tails_of_steady_jobs() -> None:
    seconds = durations(cluster(), num_clients=40, turns=70)
    steady = seconds[:, [c for c in range(40) if np.ptp(np.log(seconds[:, c])) < 0.8]]  # without the stragglers
    assert 34 <= steady.shape[1] <= 36
    assert 0.5 < np.median(lag_one(steady)) < 0.9
    ratios = np.quantile(steady, 0.99, axis=0) / np.median(steady, axis=0)
    assert ratios.min() > 1.01
    assert ratios.max() < 1.4


def test_a_straggler_appears_and_stays() -> None:
    """Its correlation is then near 1, as the traces say of such workers."""
    made = ClusterVariation(split_share=0.0, straggler_share=1.0, noise=Constant(value=0.05))
    seconds = durations(Delays(variation=made), num_clients=30, turns=60)
    before, after = np.median(seconds[:3], axis=0), np.median(seconds[-3:], axis=0)
    changed = np.abs(np.log(after / before)) > 0.3
    assert 15 < changed.sum() <= 30  # some change in the first turns, some after the last
    assert np.all((after / before)[changed] > 1.2)
    assert np.all((after / before)[changed] < 5.5)
    assert np.median(lag_one(seconds)[changed]) > 0.9


def test_a_split_part_has_a_fast_and_a_slow_half() -> None:
    seconds = durations(Delays(variation=ClusterVariation(spread=0.0, straggler_share=0.0)), num_clients=80, turns=9)
    middle = np.sort(np.median(seconds, axis=0))
    assert np.all(np.abs(middle[:10] - 0.45) < 0.09)
    assert np.all(np.abs(middle[10:70] - 1.0) < 0.2)
    assert np.all((middle[70:] > 1.3) & (middle[70:] < 2.3))


def test_without_any_of_it_the_factor_is_one() -> None:
    assert np.all(durations(Delays(variation=EVEN), num_clients=5, turns=7) == 1.0)


def test_a_draw_depends_on_nothing_that_happened_before() -> None:
    factor = ClusterVariation().bind(num_clients=7, seed=4)
    forwards = [factor(client, ticket) for ticket in range(60) for client in range(9)]  # two of them joined later
    again = ClusterVariation().bind(num_clients=7, seed=4)
    backwards = [again(client, ticket) for ticket in reversed(range(60)) for client in reversed(range(9))]
    assert forwards == backwards[::-1]


def test_the_mean_has_a_formula() -> None:
    made = ClusterVariation(straggler_share=0.0, noise=Constant(value=0.3), correlation=Constant(value=0.2))
    delays = Delays(variation=made)
    exact = expected_durations(delays, 6, seed=1).compute
    drawn = estimate_durations(delays.bind(6, seed=1), 6, tickets=1500).compute
    assert exact == pytest.approx(drawn, rel=0.08)
    assert delays.simplifications(queued=False) == ("a client's durations are correlated",)


def test_the_mean_counts_stragglers_as_they_are_in_the_end() -> None:
    slow = ClusterVariation(
        spread=0.0,
        noise=Constant(value=0.0),
        split_share=0.0,
        straggler_share=0.5,
        straggler_slowness=Constant(value=3.0),
        straggler_turn=Constant(value=2.0),
    )
    delays = Delays(variation=slow)
    assert sorted(expected_durations(delays, 4, seed=0).compute) == [1.0, 1.0, 3.0, 3.0]
    seconds = durations(delays, 4, turns=4)
    assert sorted(seconds[1]) == [1.0, 1.0, 1.0, 1.0]
    assert sorted(seconds[2]) == [1.0, 1.0, 3.0, 3.0]
    assert "stragglers count as slow from the beginning" in delays.simplifications(queued=True)


def test_it_passes_the_check_of_delays() -> None:
    check_delay(cluster())
    check_delay(cluster_job(0.9), num_clients=3, seed=5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"spread": -0.1}, "cluster.spread is -0.1"),
        ({"spread": 1e200}, "must be at most 1000"),
        ({"split_share": 1.5}, "cluster.split_share is 1.5"),
        ({"straggler_share": 2}, "cluster.straggler_share is 2"),
        ({"split_fast": 0.0}, "cluster.split_fast is 0.0"),
        ({"correlation": Constant(value=1.0)}, "whose largest draw is 1; every draw must be from 0 to below 1"),
        ({"noise": Exponential(mean=50.0)}, "must be from 0 to below 10"),
        ({"straggler_slowness": Constant(value=0.0)}, "cluster.straggler_slowness"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        ClusterVariation(**settings)


def test_a_quantile_of_which_nothing_is_known_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=re.escape("quantile is 0.99; what is known of the jobs is from 0.05 to 0.95")
    ):
        cluster_job(0.99)
