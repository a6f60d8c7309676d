"""kill -9 at random moments: of the session alone, many times in a second, and of the whole server with its clients."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.live.tiny_parts import Corrected, Shaken

import asyncfed as af
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.live.session import CheckpointPolicy
from asyncfed.store.loss_reasons import MODEL_LOST
from asyncfed.store.schema import LOST, REPORT, SKIPPED
from asyncfed.strategies import ACE, AFL, FedBuff
from asyncfed.uplinks import EF21, QSGD, ErrorFeedback, SendIf, TopK

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)
SPARSE = replace(WORK, uplink=(ErrorFeedback(codec=TopK(fraction=0.2)),))
MIRRORED = replace(WORK, uplink=(EF21(codec=TopK(fraction=0.2)),), downlink=TopK(fraction=0.3))
QUIET = replace(WORK, uplink=(SendIf(threshold=1.5, at_most=4),), downlink=QSGD())


def merge_until_killed(live, seed, chance):
    """Another process goes on with the run and is killed as it recovers or merges. How far it had acknowledged."""
    told, tell = os.pipe()
    live.journal.close()  # no process may inherit an open database
    child = os.fork()
    if child == 0:
        try:
            live.crash()
            live.commit()
            choice = np.random.default_rng(seed)
            while not live.session.finished:
                live.answer(int(choice.choice(list(live.held))))
                live.commit()
                os.write(tell, live.session.state.updates.to_bytes(4, "little"))
        finally:
            os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb", buffering=0) as pipe:
        first = pipe.read(4) if chance.random() < 0.7 else b""
        time.sleep(0.02 * chance.random())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        acknowledged = first + pipe.read()
    return int.from_bytes(acknowledged[-4:], "little")


@pytest.mark.parametrize(
    ("strategy", "checkpoints"),
    [
        pytest.param(AFL(concurrency=3, work=WORK), CheckpointPolicy(seconds=1e9), marks=pytest.mark.slow),
        (AFL(concurrency=3, aggregate="mixing", work=WORK), CheckpointPolicy(seconds=5.0)),
        pytest.param(
            FedBuff(concurrency=4, buffer_size=3, work=WORK), CheckpointPolicy(seconds=0.0), marks=pytest.mark.slow
        ),
        pytest.param(
            FedBuff(concurrency=3, buffer_size=2, work=SPARSE, rule=Corrected()),
            CheckpointPolicy(seconds=5.0),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            FedBuff(concurrency=3, buffer_size=2, work=WORK, rule=Shaken()),
            CheckpointPolicy(seconds=5.0),
            marks=pytest.mark.slow,
        ),
        *(
            pytest.param(ACE(concurrency=3, work=work), CheckpointPolicy(seconds=5.0), marks=pytest.mark.slow)
            for work in (MIRRORED, QUIET)
        ),
    ],
    ids=["payloads only", "both", "checkpoints only", "uplink and rule", "noise", "mirrored", "quiet"],
)
def test_a_session_killed_at_any_moment_loses_and_repeats_nothing(live_run, strategy, checkpoints):
    live_run(strategy=strategy).play()  # loads the kernels, so that no short life is spent on that
    live = live_run(checkpoints=checkpoints, strategy=strategy, budget=Budget(updates=900))
    live.commit()
    chance, before = np.random.default_rng(3), 0
    for kill in range(20):
        acknowledged = merge_until_killed(live, kill, chance)
        live.crash()
        live.commit()
        assert live.session.state.updates >= max(acknowledged, before)
        before = live.session.state.updates
    assert before > 10
    live.play()
    live.check_whole()


# ---- the server with its processes -----------------------------------------------------------------------------------


SERVER = """
import sys
from pathlib import Path
import asyncfed as af

path, updates, kind, root = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
sys.path.insert(0, root)
from tests.live.tiny_parts import Corrected

if path.exists():
    run = af.resume(path)
else:
    experiment = af.presets.regression(strategy="afl_mixing", num_clients=4)
    experiment = af.replace(experiment, budget=af.Budget(updates=updates), evaluation=af.Evaluation(every=50))
    if kind == "sparse":
        uplink = (af.uplinks.ErrorFeedback(codec=af.uplinks.TopK(fraction=0.2)),)
        work = af.Work(epochs=1, batch_size=32, learning_rate=0.001, uplink=uplink)
        strategy = af.strategies.FedBuff(concurrency=4, buffer_size=1, work=work, rule=Corrected())
        experiment = af.replace(experiment, strategy=strategy)
    elif kind != "plain":
        sparse = af.uplinks.TopK(fraction=0.3)
        uplink = {"ef21": af.uplinks.EF21(codec=sparse), "send_if": af.uplinks.SendIf(codec=sparse, at_most=5)}[kind]
        work = af.Work(epochs=1, batch_size=32, learning_rate=0.001, uplink=(uplink,), downlink=sparse)
        experiment = af.replace(experiment, strategy=af.strategies.FedBuff(concurrency=4, buffer_size=1, work=work))
    run = af.run_live(experiment, out=path)
sys.exit(run.verdict != "finished")
"""
ROOT = str(Path(__file__).parents[2])


def serve(path, updates, kind):
    command = [sys.executable, "-c", SERVER, str(path), str(updates), kind, ROOT]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def kill_and_resume(path, kills, updates, chance, kind="plain"):
    """Kill the server `kills` times, each time at another moment of its work; then let it finish."""
    server, done, clients = serve(path, updates, kind), 0, []
    for _ in range(kills):
        done = wait_for_events(path, server, done + 20)
        time.sleep(0.2 * chance.random())
        clients += children_of(server.pid)
        server.kill()
        server.communicate()
        server = serve(path, updates, kind)
    _, complaints = server.communicate(timeout=300)
    assert server.returncode == 0, complaints.decode()
    assert not [pid for pid in clients if is_python(pid)], "clients outlived their server"


def wait_for_events(path, server, wanted):
    """Until the file holds so many events. Then the server is at work, and not starting or recovering."""
    for _ in range(6000):
        assert server.poll() is None, server.stderr.read().decode()
        time.sleep(0.01)
        done = events_in(path)
        if done >= wanted:
            return done
    raise AssertionError("the server did not get to work")


def events_in(path):
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as file:
        try:
            return file.execute("SELECT max(first_seq + count) FROM events").fetchone()[0] or 0
        except sqlite3.Error:  # it is just being made
            return 0


def children_of(pid):
    """Processes whose parent's parent is the server: it has a fork server, whose children the clients are."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(child): int(parent) for child, parent in (line.split() for line in table.splitlines())}
    return [child for child, parent in parents.items() if parents.get(parent) == pid]


def is_python(pid):
    found = subprocess.run(["ps", "-o", "stat=,comm=", "-p", str(pid)], capture_output=True, text=True).stdout
    return "python" in found and not found.startswith("Z")


def check_whole(path, updates):
    run = af.load(path)
    table = run.journal.event_columns()
    merged = [t for kind, t in zip(table["kind"], table["ticket"], strict=True) if kind == "merge"]
    versions = [v for kind, v in zip(table["kind"], table["version"], strict=True) if kind == "merge"]
    assert versions == list(range(1, updates + 1))
    assert len(set(merged)) == updates
    verification = af.verify(path)
    assert verification.ok, verification.lines


@pytest.mark.slow
def test_a_server_that_is_killed_ends_as_if_it_had_not_been(tmp_path):
    path = tmp_path / "live.sqlite"
    kill_and_resume(path, 1, 1500, np.random.default_rng(0))
    check_whole(path, 1500)


@pytest.mark.slow
def test_a_killed_server_takes_its_clients_memories_with_it_and_the_journal_says_so(tmp_path):
    path = tmp_path / "live.sqlite"
    kill_and_resume(path, 1, 2500, np.random.default_rng(0), kind="sparse")
    check_whole(path, 2500)
    anew = [event.client for event in af.load(path).journal.event_rows() if event.kind == REPORT and event.memory == -1]
    assert sorted(anew) == [0, 1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ef21", "send_if"])
def test_clients_and_server_killed_with_memories_on_both_sides(tmp_path, kind):
    """Killed clients have lost the models that differences are from: they say so, and are sent whole ones."""
    path, chance, updates = tmp_path / "live.sqlite", np.random.default_rng(2), 2000
    server = serve(path, updates, kind)
    for kill in range(4):
        done = wait_for_events(path, server, events_in(path) + 60)
        time.sleep(0.05 * chance.random())
        clients = [pid for pid in children_of(server.pid) if is_python(pid)]
        if kill == 2:
            server.kill()
            server.communicate()
            server = serve(path, updates, kind)
        else:
            os.kill(int(chance.choice(clients)), signal.SIGKILL)
    assert done < 2 * updates, "the run was over before everybody had been killed"
    _, complaints = server.communicate(timeout=300)
    assert server.returncode == 0, complaints.decode()
    check_whole(path, updates)
    events = list(af.load(path).journal.event_rows())
    assert [event for event in events if event.kind == LOST and event.reason == MODEL_LOST]
    assert (kind == "send_if") == any(event.kind == SKIPPED for event in events)


@pytest.mark.slow
def test_a_server_killed_twenty_times_ends_as_if_it_had_not_been(tmp_path):
    path = tmp_path / "live.sqlite"
    kill_and_resume(path, 20, 20_000, np.random.default_rng(1))
    check_whole(path, 20_000)
