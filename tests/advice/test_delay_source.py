"""Delays by name, from past job times, from a recorded run."""

import pytest
from tests.advice.conftest import small_experiment

import asyncfed as af
from asyncfed.advice.delay_source import charge_for_work, read_delays
from asyncfed.delays import Delays, PerWork
from asyncfed.delays.files_read import files_read

WORK = af.Work(steps=8)


def test_delays_by_name_and_as_they_are(tmp_path):
    assert read_delays("stragglers", WORK, tmp_path) == af.delays.stragglers()
    assert read_delays(Delays(), WORK, tmp_path) == Delays()
    with pytest.raises(af.errors.ConfigError, match='no delays "stragler"'):
        read_delays("stragler", WORK, tmp_path)


def test_past_job_times(tmp_path):
    path = tmp_path / "times.csv"
    path.write_text("client,seconds\n0,2\n1,30\n")
    delays = read_delays(path, WORK, tmp_path)
    assert delays.bind(2, 0).timing(1, 0, WORK, 100).compute == 30.0
    assert delays.bind(2, 0).timing(1, 0, af.Work(steps=16), 100).compute == 60.0
    assert files_read(delays) == [str(path)]
    with pytest.raises(af.errors.ConfigError, match="cannot be read as a CSV"):
        read_delays(tmp_path / "none.csv", WORK, tmp_path)


def test_a_recorded_run(tmp_path):
    experiment = small_experiment(
        budget=af.Budget(updates=30), strategy=af.strategies.FedAsync(concurrency=10, work=af.Work(epochs=2))
    )
    af.run(experiment, out=tmp_path / "run.sqlite").journal.close()
    delays = read_delays(str(tmp_path / "run.sqlite"), WORK, tmp_path / "advice")
    assert (delays.epochs, delays.may_lose) == (2, False)
    model, recorded = delays.bind(10, 0), experiment.delays.bind(10, 0)
    for client in range(10):
        seconds = recorded.timing(client, 0, af.Work(), 1).compute
        if seconds == 1.0:  # stragglers may not have answered; then they count as the others
            assert model.timing(client, 5, af.Work(epochs=2), 1).compute == seconds
    assert (tmp_path / "advice" / "durations.csv").read_text().startswith("client,seconds\n0,1.0\n")


def test_delays_that_know_the_work_are_left_as_they_are():
    free, charged = small_experiment(), small_experiment(delays=Delays(per_sample=0.1))
    assert charge_for_work(charged, charged.problem()) is charged.delays
    assert charge_for_work(free, free.problem()) == PerWork(delays=free.delays)
    in_steps = small_experiment(strategy=af.strategies.FedAsync(work=WORK))
    assert charge_for_work(in_steps, in_steps.problem()) == PerWork(delays=free.delays, steps=8)
