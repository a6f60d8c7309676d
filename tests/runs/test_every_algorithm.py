"""One algorithm for every channel between strategy, rule and client, through everything a run may meet.

Simulated on one thread and two, killed with -9 and resumed, verified, on a PyTorch problem; live with a client and the
server killed, resumed, and replayed to the same model.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pytest

import asyncfed as af
from asyncfed.rules import CA2FL, Adagrad, Adam, DcAsgd, FedNova, Momentum, Noised, Optimised, Scaffold, Yogi
from asyncfed.rules.qfair import QFair
from asyncfed.store.schema import KIND_NAMES
from asyncfed.strategies import AFL, AFLGuard, FedAsync, FedAvg, FedBuff, FedCompass, NoDiscount, Ringmaster
from asyncfed.strategies.minimum_participation import MinimumParticipation
from asyncfed.strategies.oort import OortSampler
from asyncfed.strategies.pisces import Pisces
from asyncfed.uplinks import Clip, ErrorFeedback, TopK

WORK = af.Work(epochs=1, batch_size=8, learning_rate=0.005)
CONSTANT = af.ConstantRate()
BUFFERED = FedBuff(concurrency=3, buffer_size=3, discount=NoDiscount(), work=WORK)


def with_uplink(*uplinks):
    return af.replace(BUFFERED, work=af.replace(WORK, uplink=uplinks))


ALGORITHMS = {
    "scaffold": FedAvg(cohort_size=3, weighting="equal", work=WORK, rule=Scaffold()),
    "asynchronous_scaffold": AFL(concurrency=3, aggregate="delta_mean", work=WORK, schedule=CONSTANT, rule=Scaffold()),
    "fedadam": FedAvg(cohort_size=3, work=WORK, rule=Optimised(optimiser=Adam(lr=0.05))),
    "fedyogi": af.replace(BUFFERED, rule=Optimised(optimiser=Yogi(lr=0.05))),
    "fedadagrad": af.replace(BUFFERED, rule=Optimised(optimiser=Adagrad(lr=0.05))),
    "server_momentum": FedAsync(concurrency=3, work=WORK, rule=Optimised(optimiser=Momentum(lr=0.1))),
    "ca2fl": af.replace(BUFFERED, rule=CA2FL()),
    "dc_asgd": AFL(concurrency=3, aggregate="delta_mean", work=WORK, schedule=CONSTANT, rule=DcAsgd()),
    "fednova": FedAvg(cohort_size=3, work=WORK, rule=FedNova()),
    "aflguard": AFLGuard(concurrency=2, server_lr=0.5, work=WORK),
    "top_k_with_error_feedback": with_uplink(ErrorFeedback(codec=TopK(fraction=0.2))),
    "clipped_and_noised": af.replace(
        with_uplink(Clip(norm=1.0)), rule=Noised(clip=1.0, multiplier=0.05, divisor=BUFFERED.buffer_size)
    ),
    "fedcompass": FedCompass(min_steps=2, max_steps=12, work=WORK),
    "guided_and_fair": FedBuff(
        concurrency=3,
        buffer_size=2,
        sampler=MinimumParticipation(sampler=OortSampler(), gap=1.0),
        rule=QFair(),
        work=af.replace(WORK, start_rms=True, start_loss=True),
    ),
    "pisces": Pisces(concurrency=3, staleness_bound=3, work=af.replace(WORK, start_rms=True)),
    "ringmaster": Ringmaster(concurrency=3, staleness_threshold=2, server_lr=0.3, work=WORK),
}
each = pytest.mark.parametrize("name", ALGORITHMS)


def described(name, updates):
    return af.Experiment(
        name=name,
        num_clients=5,
        data=af.data.PaperRegression(num_samples=200),
        strategy=ALGORITHMS[name],
        delays=af.delays.heavy_tailed(),
        budget=af.Budget(updates=updates),
        evaluation=af.Evaluation(every=20),
    )


@each
def test_threads_and_stops_change_nothing_and_the_file_verifies(name, tmp_path, run_in_pieces):
    experiment, path = described(name, 90), tmp_path / "run.sqlite"
    assert af.from_toml(af.to_toml(experiment)) == experiment
    whole = af.run(experiment, threads=1)
    assert whole.verdict == "finished"
    assert whole.evaluations["objective"][-1] < whole.evaluations["objective"][0]
    assert af.run(experiment, threads=2).sha256 == whole.sha256
    assert run_in_pieces(experiment, path, arrivals=13).sha256 == whole.sha256
    verification = af.verify(path)
    assert verification.ok, verification.lines


# ---- a PyTorch module ----------------------------------------------------------------------------------------------


def rows_of(client):
    rng = np.random.default_rng(client)
    x = rng.normal(size=(24, 5)).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] > 0).astype(np.int64)


@each
def test_on_a_pytorch_module(name, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")

    def module():
        return torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2))

    problem = af.problems.torch(module, "cross_entropy", [rows_of(client) for client in range(5)])
    experiment, path = described(name, 60), tmp_path / "run.sqlite"
    run = af.run(experiment, problem=problem, out=path, threads=1)
    assert run.verdict == "finished"
    assert np.isfinite(run.evaluations["objective"][-1])
    assert af.run(experiment, problem=problem, threads=2).sha256 == run.sha256
    assert af.verify(path, problem=problem).ok


# ---- killed --------------------------------------------------------------------------------------------------------


def start(command, toml, path, *more):
    words = [sys.executable, "-m", "asyncfed", command, str(toml), "--out", str(path), *more]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def events_in(path):
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as file:
        try:
            return file.execute("SELECT max(first_seq + count) FROM events").fetchone()[0] or 0
        except sqlite3.Error:  # it is just being made
            return 0


def wait_for_events(path, process, wanted):
    for _ in range(12000):
        assert process.poll() is None, process.stderr.read().decode()
        if events_in(path) >= wanted:
            return
        time.sleep(0.005)
    raise AssertionError("the run did not get to work")


@pytest.mark.slow
@each
def test_killed_and_resumed_it_ends_as_if_nothing_had_happened(name, tmp_path):
    toml, path = tmp_path / "experiment.toml", tmp_path / "killed.sqlite"
    experiment = described(name, 16_000)
    toml.write_text(af.to_toml(experiment))
    process = start("run", toml, path, "--checkpoint-seconds", "0.05")
    wait_for_events(path, process, 300)
    time.sleep(random.Random(name).random() * 0.3)
    process.kill()
    process.communicate()
    assert not af.load(path).finished
    assert af.resume(path).sha256 == af.run(experiment).sha256
    assert af.verify(path).ok


def grandchildren_of(pid):
    """The clients' processes: the server has a fork server, whose children they are."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(child): int(parent) for child, parent in (line.split() for line in table.splitlines())}
    return [child for child, parent in parents.items() if parents.get(parent) == pid]


@pytest.mark.slow
@each
def test_live_with_a_client_and_the_server_killed_it_replays_to_the_same_model(name, tmp_path):
    toml, path = tmp_path / "experiment.toml", tmp_path / "live.sqlite"
    toml.write_text(af.to_toml(described(name, 6_000)))
    process = start("live", toml, path)
    wait_for_events(path, process, 200)
    os.kill(grandchildren_of(process.pid)[0], signal.SIGKILL)
    wait_for_events(path, process, events_in(path) + 400)
    process.kill()
    process.communicate()
    assert not af.load(path).finished
    run = af.resume(path)
    assert run.verdict == "finished"
    merged = [e for e in run.journal.event_rows() if KIND_NAMES[e.kind] == "merge"]
    assert [e.version for e in merged] == list(range(1, len(merged) + 1))
    verification = af.verify(path)
    assert verification.ok, verification.lines
