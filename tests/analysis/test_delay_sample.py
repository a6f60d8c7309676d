"""A sample of delays is what the delays say."""

from __future__ import annotations

import numpy as np
import pytest

from asyncfed.analysis.delay_sample import sample_delays
from asyncfed.core.errors import ConfigError
from asyncfed.delays import Availability, Constant, Delays, Exponential, LogNormal, cluster_job, stragglers


def test_clients_are_given_the_next_ticket_when_the_last_is_back() -> None:
    delays = Delays(compute=Constant(value=2.0), upload=Constant(value=0.5), bandwidth_down=Constant(value=100.0))
    sample = sample_delays(delays, num_clients=2, tickets=3, model_bytes=50)
    assert sample.active.tolist() == [[3.0, 3.0]] * 3
    assert sample.arrived.tolist() == [[3.0, 3.0], [6.0, 6.0], [9.0, 9.0]]
    assert sample.present is None
    assert sample.between_clients() == 0.0
    assert sample.slowest_percent() == 1.0
    assert np.isnan(sample.autocorrelation()).all()


def test_absences_count_in_the_seconds_only() -> None:
    half = Availability(period=86400.0, on_fraction=0.5, random_phase=False)
    sample = sample_delays(Delays(compute=Constant(value=30000.0), availability=half), num_clients=1, tickets=2)
    assert sample.active[:, 0].tolist() == [30000.0, 30000.0]
    assert sample.seconds[:, 0].tolist() == [30000.0, 30000.0 + 43200.0]
    assert sample.present is not None
    assert sample.present.shape == (7, 96)
    assert sample.present[:, :48].min() == 1.0
    assert sample.present[:, 48:].max() == 0.0


def test_presence_that_comes_and_goes_by_the_minute_is_seen() -> None:
    blinking = Availability(period=100.0, on_fraction=0.3, random_phase=False)
    sample = sample_delays(Delays(availability=blinking), num_clients=1, tickets=2)
    assert sample.present is not None
    assert sample.present.mean() == pytest.approx(0.3, abs=0.03)


def test_lost_tickets_are_given_up_in_time() -> None:
    sample = sample_delays(Delays(dropout=0.5, timeout=7.0), num_clients=4, tickets=50)
    assert np.all(sample.seconds[sample.lost] == 7.0)
    assert np.all(sample.seconds[~sample.lost] == 1.0)
    assert 0.3 < sample.lost.mean() < 0.7


def test_the_numbers_are_those_of_the_delays() -> None:
    independent = sample_delays(Delays(compute=LogNormal(median=1.0, sigma=0.1)), num_clients=6, tickets=300)
    assert independent.slowest_percent() == pytest.approx(np.exp(0.2326), rel=0.08)
    assert abs(np.median(independent.autocorrelation()[1])) < 0.1
    half = sample_delays(stragglers(share=0.5, slowness=3.0), num_clients=4, tickets=3)
    assert half.between_clients() == pytest.approx(0.5)
    assert 0.5 < np.median(sample_delays(cluster_job(0.5), num_clients=6).autocorrelation()[1]) < 0.9


def test_too_little_and_too_much_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1 client, 2 tickets and 1 row"):
        sample_delays(Delays(), tickets=1)
    with pytest.raises(ConfigError, match="the limit is 200,000"):
        sample_delays(Delays(compute=Exponential(mean=1.0)), num_clients=2_001, tickets=100)
