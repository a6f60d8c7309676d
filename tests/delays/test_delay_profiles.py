"""The profiles are what they say, for any number of clients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Delays, cluster, expected_durations, hospital, phones
from asyncfed.delays.delay_profiles import HOSPITAL_SIZES
from asyncfed.experiment import Experiment, from_toml, to_toml
from asyncfed.strategies import AFL
from asyncfed.testing import check_delay

PROFILES = {"cluster": cluster(), "hospital": hospital(), "hospital by rows": hospital(rows=500.0), "phones": phones()}


@pytest.mark.parametrize("delays", PROFILES.values(), ids=list(PROFILES))
def test_they_pass_the_check_and_have_a_written_form(delays: Delays) -> None:
    check_delay(delays, num_clients=9)
    check_delay(delays, num_clients=1, seed=3)
    experiment = Experiment(delays=delays)
    assert from_toml(to_toml(experiment)) == experiment


def test_the_slowest_hospital_is_the_largest_and_takes_half_an_hour() -> None:
    means = expected_durations(hospital(), 14, seed=0).compute
    assert np.argmax(means) in (0, 7)
    assert means[0] == pytest.approx(1800.0, rel=0.03)
    assert means == pytest.approx(np.tile(means[:7], 2))
    assert means[:7] / means[0] == pytest.approx(HOSPITAL_SIZES, abs=0.02)


def test_hospitals_work_in_proportion_to_their_own_rows_if_asked_to() -> None:
    model = hospital(rows=1000.0).bind(num_clients=3, seed=0)
    few, many = (model.timing(1, 5, Work(epochs=1), rows).compute for rows in (100, 1000))
    assert many == pytest.approx(10 * few)
    means = expected_durations(hospital(rows=1000.0), 2, seed=0, num_examples=[1000, 500]).compute
    assert means == pytest.approx([1826.0, 922.0], rel=0.02)
    with pytest.raises(ConfigError, match="rows is 0"):
        hospital(rows=0)


def test_hospitals_lose_tickets_and_links() -> None:
    model = hospital().bind(num_clients=7, seed=0)
    lost = np.mean([model.timing(client, ticket, Work(), 10).lost for client in range(7) for ticket in range(300)])
    assert lost == pytest.approx(0.03, abs=0.015)
    moments = np.arange(0.0, 30 * 86400.0, 1800.0).tolist()
    away = np.mean([model.finish_compute(0, moment, 0.0) > moment for moment in moments])
    assert away == pytest.approx(600.0 / 21600.0, rel=0.5)


def test_phones_come_and_go_with_the_hour() -> None:
    """At the busiest hour about four times as many are there as at the quietest."""
    model = phones().bind(num_clients=300, seed=0)
    hours = 3600.0 * np.arange(24, 48)
    present = np.array([[model.finish_compute(c, hour, 60.0) < hour + 61.0 for c in range(300)] for hour in hours])
    by_hour = present.mean(axis=1)
    assert by_hour.mean() == pytest.approx(0.25, abs=0.04)
    assert 2.5 < by_hour.max() / by_hour.min() < 6.0


def test_phones_are_of_three_classes() -> None:
    model = phones().bind(num_clients=100, seed=0)
    classes = [model.device_of(client) for client in range(100)]
    assert {name: classes.count(name) for name in set(classes)} == {"slow": 30, "middle": 50, "fast": 20}
    medians = {
        name: np.median(
            [
                model.timing(c, ticket, Work(), 1).compute
                for c in range(100)
                if classes[c] == name
                for ticket in range(30)
            ]
        )
        for name in ("fast", "middle", "slow")
    }
    assert list(medians.values()) == pytest.approx([60.0, 120.0, 300.0], rel=0.1)
    slow = classes.index("slow")
    assert model.transfer_seconds(slow, 3_000_000, 1_000_000) == (8.0, 8.0)


@pytest.mark.slow
@pytest.mark.parametrize("delays", PROFILES.values(), ids=list(PROFILES))
def test_a_run_that_is_broken_off_goes_on_as_if_it_had_not_been(delays: Delays, tmp_path: Path) -> None:
    experiment = Experiment(delays=delays, strategy=AFL(concurrency=4), budget=Budget(rounds=300))

    def break_off(progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        af.run(experiment, out=tmp_path / "broken.sqlite", watch=break_off)
    continued, whole = af.resume(tmp_path / "broken.sqlite"), af.run(experiment)
    assert continued.journal.sha256() == whole.journal.sha256()
