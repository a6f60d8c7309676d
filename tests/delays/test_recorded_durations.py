"""The durations of a recorded run as the delays of another experiment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Delays, LogNormal, RecordedDurations, expected_durations
from asyncfed.delays.recorded_jobs import recorded_jobs
from asyncfed.experiment import Experiment, from_toml, to_toml
from asyncfed.presets import delays_named
from asyncfed.runs.result import load_run
from asyncfed.strategies import AFL
from asyncfed.testing import check_delay

STRATEGY = AFL(concurrency=3)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("recorded") / "run.sqlite"
    delays = Delays(compute=LogNormal(median=1.0, sigma=1.0), dropout=0.2)
    af.run(Experiment(num_clients=4, strategy=STRATEGY, delays=delays, budget=Budget(updates=30)), out=file)
    return file


def test_a_turn_is_a_job_of_each_client(recorded: Path) -> None:
    jobs = recorded_jobs(load_run(recorded).journal.event_rows())
    delays = RecordedDurations(file=str(recorded))
    model = delays.bind(num_clients=4, seed=0)
    for client, of_client in jobs.items():
        for turn in range(2 * len(of_client)):
            timing = model.timing(client, 4 * turn + client, Work(), 10)
            job = of_client[turn % len(of_client)]
            assert (timing.compute, timing.lost) == (job.seconds, job.lost)
    means = expected_durations(delays, 4, seed=0).compute
    assert means == pytest.approx([np.mean([j.seconds for j in jobs[c] if not j.lost]) for c in range(4)])
    assert delays.may_lose
    assert "tickets are lost, which is left out" in delays.simplifications(queued=False)


def test_it_passes_the_check_has_a_name_and_a_written_form(recorded: Path) -> None:
    delays = delays_named(str(recorded))
    assert delays == RecordedDurations(file=str(recorded))
    check_delay(delays)
    check_delay(delays, num_clients=9)  # of five of them nothing was recorded
    experiment = Experiment(delays=delays)
    assert from_toml(to_toml(experiment)) == experiment


def test_a_run_with_it_can_be_repeated(recorded: Path) -> None:
    delays = RecordedDurations(file=str(recorded))
    experiment = Experiment(num_clients=4, strategy=STRATEGY, delays=delays, budget=Budget(updates=20))
    first, second = af.run(experiment), af.run(experiment)
    assert first.journal.sha256() == second.journal.sha256()
    assert first.evaluations["elapsed"][-1] > 0


def test_a_run_without_answers_has_no_durations(tmp_path: Path) -> None:
    file = tmp_path / "run.sqlite"
    af.run(Experiment(budget=Budget(elapsed=0.5)), out=file)
    with pytest.raises(ConfigError, match="has no answered ticket"):
        delays_named(str(file))


def test_files_are_told_by_their_ending(tmp_path: Path) -> None:
    file = tmp_path / "seconds.csv"
    file.write_text("client,seconds\n0,1.5\n")
    assert delays_named(str(file)) == Delays(trace=str(file))
    with pytest.raises(ConfigError, match=r"ends in \.csv, that of a recorded run in \.sqlite"):
        delays_named("clustr")
