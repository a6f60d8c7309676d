"""The same experiment gives the same bytes: whatever the threads, the evaluation cadence, or where it was killed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import asyncfed as af
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.data import InOrder, PaperRegression
from asyncfed.delays import Delays, Device, Exponential
from asyncfed.engine.evaluation import Evaluation
from asyncfed.strategies import AFL, FedAvg, FedBuff, PublishedScripts

DELAYS = Delays(compute=Exponential(mean=1.0), dropout=0.05, devices=(Device(name="slow", share=0.2, slowness=5.0),))
WORK = Work(epochs=3, batch_size=8, learning_rate=0.002)


def experiment(strategy, updates=600, clients=40):
    return af.Experiment(
        num_clients=clients,
        data=PaperRegression(num_samples=25 * clients),
        split=InOrder(),
        strategy=strategy,
        delays=DELAYS,
        budget=Budget(updates=updates),
        init="torch",
        seed=7,
    )


STRATEGIES = {
    "afl": AFL(concurrency=12, work=WORK),
    "afl_wait": AFL(concurrency=12, aggregate="delta_mean", max_staleness=6, when_stale="wait", work=WORK),
    "fedavg": FedAvg(cohort_size=12, work=WORK),
    "fedbuff": FedBuff(concurrency=12, buffer_size=5, work=WORK),
    "published": PublishedScripts(cohort_size=12, work=replace(WORK, start="own")),
}


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_threads_do_not_change_a_byte(strategy):
    one, two = (af.run(experiment(strategy), threads=n).sha256 for n in (1, 2))
    assert one == two


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_evaluation_cadence_does_not_change_a_byte(strategy):
    base = experiment(strategy)
    cadences = [
        Evaluation(every=0, distance=False),
        Evaluation(every=3),
        Evaluation(every=7, unit="update", drift=True),
    ]
    digests = {tuple(af.run(replace(base, evaluation=e), threads=1).sha256.values()) for e in cadences}
    assert len(digests) == 1


def test_another_seed_is_another_run():
    base = experiment(STRATEGIES["afl"])
    assert af.run(base).sha256 != af.run(replace(base, seed=8)).sha256


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_resuming_from_any_checkpoint_gives_the_same_bytes(strategy, tmp_path, run_in_pieces):
    """Stop after every so many arrivals, reopen the file, go on: as many times as it takes."""
    base, path = experiment(strategy, updates=150), tmp_path / "run.sqlite"
    whole = af.run(base, threads=1)
    resumed = run_in_pieces(base, path, arrivals=37)
    assert resumed.sha256 == whole.sha256
    assert {k: v.tolist() for k, v in resumed.rounds.items()} == {k: v.tolist() for k, v in whole.rounds.items()}
    assert resumed.evaluations["objective"].tolist() == whole.evaluations["objective"].tolist()
    assert af.verify(path).ok


def start_process(toml: Path, out: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "asyncfed", "run", str(toml), "--out", str(out)]
    command += ["--threads", "1", "--checkpoint-seconds", "0.05"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for_a_checkpoint(out: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if out.exists():
            try:
                if af.load(out).journal.checkpoint() is not None:
                    return
            except af.errors.AsyncFedError:
                pass  # being made
        time.sleep(0.02)
    raise AssertionError("the run never wrote a checkpoint")


@pytest.mark.slow
def test_killed_with_minus_nine_at_several_moments_and_resumed(tmp_path):
    """A real process, `kill -9` at random moments, resumed by real processes until it ends."""
    base = replace(experiment(STRATEGIES["afl"], updates=150_000, clients=60), evaluation=Evaluation(every=500))
    toml = tmp_path / "experiment.toml"
    toml.write_text(af.to_toml(base))
    whole = af.run(base, threads=2).sha256
    out = tmp_path / "killed.sqlite"
    process = start_process(toml, out)
    wait_for_a_checkpoint(out)
    moments = random.Random(os.getpid())
    kills = 0
    for _ in range(4):
        time.sleep(moments.uniform(0.02, 0.4))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if af.load(out).finished:
            break  # it was faster than the signal
        kills += 1
        command = [sys.executable, "-m", "asyncfed", "resume", str(out), "--threads", "2"]
        process = subprocess.Popen(
            [*command, "--checkpoint-seconds", "0.05"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(1.2)  # let it start up and get somewhere
    process.wait(timeout=120)
    assert kills >= 1
    assert af.resume(out).finished
    assert af.load(out).sha256 == whole


def test_ctrl_c_stops_cleanly_and_can_be_resumed(tmp_path):
    base = replace(experiment(STRATEGIES["fedbuff"], updates=200_000), evaluation=Evaluation(every=2000))
    toml = tmp_path / "experiment.toml"
    toml.write_text(af.to_toml(base))
    out = tmp_path / "stopped.sqlite"
    process = start_process(toml, out)
    wait_for_a_checkpoint(out)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    stopped = af.load(out)
    assert not stopped.finished
    assert len(stopped.rounds["round"]) > 0
