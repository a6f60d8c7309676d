"""Runs whose models and results lie in shared memory: the same as with sockets, whatever clients do to them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from benchmarks.large_problem import LargeProblem
from tests.live import mischief
from tests.live.local.test_server_loop import PATIENT, WORK, count_bodies
from tests.live.mischief import MischievousProblem
from tests.live.tiny_parts import Corrected

import asyncfed as af
from asyncfed.core.record import replace
from asyncfed.kernels import recycled_memory
from asyncfed.live.checks import Limits
from asyncfed.live.local.local_engine import LocalEngine
from asyncfed.live.local.shared_memory import SharedModels
from asyncfed.rules import vectors
from asyncfed.runs.live import run_live
from asyncfed.store import array_store
from asyncfed.store.array_file import ArrayFile
from asyncfed.strategies import AFL, FedBuff
from asyncfed.uplinks import Clip

pytestmark = pytest.mark.skipif(SharedModels.create(2**20, 1) is None, reason="the system has no such memory")
SHARED = replace(PATIENT, shared_bytes=8)


@pytest.fixture
def all_large(monkeypatch):
    """Every model is large enough to be shared."""
    for module in (array_store, recycled_memory, vectors):
        monkeypatch.setattr(module, "LARGE", 8)


def decided(run):
    """All that does not depend on how long things took."""
    return [(row.kind, row.ticket, row.client, row.version) for row in run.journal.event_rows()], run.params.tobytes()


ONE_BY_ONE = [
    AFL(concurrency=1, aggregate="mixing", work=WORK),
    AFL(concurrency=1, work=WORK),
    FedBuff(concurrency=1, buffer_size=3, work=WORK),
    FedBuff(concurrency=1, buffer_size=1, work=WORK, rule=Corrected()),
    FedBuff(concurrency=1, buffer_size=2, work=replace(WORK, uplink=(Clip(norm=0.1),))),
]


@pytest.mark.parametrize("strategy", ONE_BY_ONE, ids=["mixing", "latest", "buffer", "rule", "uplink"])
def test_a_run_is_the_same_with_sockets_and_with_shared_memory(
    three_clients, tmp_path, all_large, monkeypatch, strategy
):
    counted, outcomes = count_bodies(monkeypatch), []
    for name, shared_bytes in (("shared", 8), ("sockets", None)):
        path = tmp_path / f"{name}.sqlite"
        engine = LocalEngine(shared_bytes=shared_bytes)
        run = run_live(three_clients(24, strategy=strategy), engine=engine, out=path)
        outcomes.append(decided(run))
        verification = af.verify(path)
        assert verification.ok, verification.lines
        if shared_bytes is not None:
            down = 24 * 2 * 88 if isinstance(getattr(strategy, "rule", None), Corrected) else 0
            assert counted == [down, 0]  # corrections go with their model through the socket
    assert outcomes[0] == outcomes[1]
    assert counted[1] >= 24 * 88


def test_results_are_put_straight_into_the_file(three_clients, tmp_path, all_large, monkeypatch, check_whole):
    taken, written = [], []
    take, pwrite = ArrayFile.take, os.pwrite
    monkeypatch.setattr(ArrayFile, "take", lambda file, length: (taken.append(length), take(file, length))[1])
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: (written.append(len(data)), pwrite(fd, data, at))[1])
    run_live(three_clients(60), engine=LocalEngine(shared_bytes=8), out=tmp_path / "live.sqlite")
    assert set(taken) == {88}
    assert len(taken) >= 60  # some may have arrived when the run was over
    assert sum(written) < 60 * 88
    check_whole(tmp_path / "live.sqlite", 60)


def test_a_killed_client_gets_a_new_slot(three_clients, tmp_path, all_large, events, check_whole):
    path, experiment = tmp_path / "live.sqlite", three_clients(150)
    problem = MischievousProblem(experiment.problem(), 1, mischief.die_while_writing, tmp_path / "killed")
    run = run_live(experiment, engine=SHARED, problem=problem, out=path)
    (lost,) = events(run, "lost")
    assert (lost.client, lost.detail) == (1, '"its process ended"')
    assert problem.shards_sent == [0, 1, 2, 1]
    assert [row for row in events(run, "report") if row.client == 1 and row.seq > lost.seq]
    check_whole(path, 150)


UNREADABLE = {
    mischief.place_too_much: "is said to have 1099511627776 bytes; 1 to 88 can be",
    mischief.place_one_byte_too_many: "is said to have 89 bytes; 1 to 88 can be",
    mischief.place_nothing: "is said to have 0 bytes; 1 to 88 can be",
    mischief.place_less_than_nothing: "is said to have -8 bytes; 1 to 88 can be",
    mischief.place_and_send: "is said to lie in shared memory, and another one followed",
}


@pytest.mark.parametrize("what", UNREADABLE, ids=lambda what: what.__name__)
def test_a_body_that_cannot_be_in_the_slot_is_refused_and_the_process_replaced(
    three_clients, tmp_path, all_large, events, check_whole, what
):
    path, experiment = tmp_path / "live.sqlite", three_clients(120)
    problem = MischievousProblem(experiment.problem(), 1, what, tmp_path / "done")
    run = run_live(experiment, engine=SHARED, problem=problem, out=path)
    (refused,) = events(run, "refused")
    assert UNREADABLE[what] in refused.detail
    assert problem.shards_sent == [0, 1, 2, 1]
    check_whole(path, 120)


def test_a_body_in_shared_memory_is_refused_where_nothing_is_shared(three_clients, tmp_path, events, check_whole):
    path, experiment = tmp_path / "live.sqlite", three_clients(120)
    problem = MischievousProblem(experiment.problem(), 1, mischief.place_where_nothing_is_shared, tmp_path / "done")
    run = run_live(experiment, engine=PATIENT, problem=problem, out=path)
    (refused,) = events(run, "refused")
    assert "this client has none" in refused.detail
    check_whole(path, 120)


@pytest.mark.parametrize(
    ("what", "reasons"),
    [
        (mischief.place_too_little, ["has shape (10,); it must have (11,)", "was answered already"]),
        (mischief.place_for_another_ticket, ["ticket 1000000 was never dispatched"]),
    ],
    ids=["too little", "another ticket"],
)
def test_a_result_in_the_slot_is_checked_like_any_other(three_clients, tmp_path, all_large, events, what, reasons):
    path, experiment = tmp_path / "live.sqlite", three_clients(120)
    problem = MischievousProblem(experiment.problem(), 1, what, tmp_path / "done")
    run = run_live(experiment, engine=SHARED, problem=problem, out=path)
    refused = [row.detail for row in events(run, "refused")]
    assert len(refused) == len(reasons)
    assert all(reason in detail for reason, detail in zip(reasons, refused, strict=True))
    assert run.verdict == "finished"


def test_who_changes_its_slot_after_reporting_changes_nothing_that_was_accepted(
    three_clients, tmp_path, all_large, events
):
    """What was checked is what is merged and kept: nothing that is not finite gets any further."""
    path, experiment = tmp_path / "live.sqlite", three_clients(60)
    problem = MischievousProblem(experiment.problem(), 1, mischief.scribble)
    run = run_live(experiment, engine=SHARED, problem=problem, out=path, limits=Limits(faults=5))
    assert np.isfinite(run.params).all()
    assert run.verdict == "finished"
    assert {row.client for row in events(run, "refused")} <= {1}
    assert run.participation().sum() == 60


def test_a_client_cannot_make_the_models_writable_and_finds_no_descriptor(three_clients, tmp_path, all_large):
    marker, experiment = tmp_path / "outcome", three_clients(30)
    problem = MischievousProblem(experiment.problem(), 1, mischief.write_to_models, marker)
    run_live(experiment, engine=SHARED, problem=problem, out=tmp_path / "live.sqlite")
    assert marker.read_text() == "[-1, 0]"


def test_where_the_system_has_no_such_memory_sockets_are_used(
    three_clients, tmp_path, all_large, monkeypatch, check_whole
):
    monkeypatch.delattr(os, "memfd_create")
    counted = count_bodies(monkeypatch)
    run_live(three_clients(20), engine=SHARED, out=tmp_path / "live.sqlite")
    assert counted[1] >= 20 * 88
    check_whole(tmp_path / "live.sqlite", 20)


def test_a_stopped_run_goes_on(three_clients, tmp_path, all_large, check_whole):
    path = tmp_path / "live.sqlite"
    once = iter([signal.SIGINT])
    run = run_live(
        three_clients(80),
        engine=SHARED,
        out=path,
        watch=lambda progress: progress.updates > 20 and signal.raise_signal(next(once, 0) or signal.SIGCONT),
    )
    assert run.verdict == "interrupted"
    run.journal.close()
    af.resume(path).journal.close()
    check_whole(path, 80)


SERVER = """
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[2])
from benchmarks.large_problem import LargeProblem

import asyncfed as af

work = af.Work(epochs=1, batch_size=1, learning_rate=0.5)
experiment = af.Experiment(
    name="large", num_clients=2, strategy=af.strategies.FedAsync(concurrency=2, work=work),
    budget=af.Budget(updates=10**6), evaluation=af.Evaluation(every=0),
)
problem = LargeProblem(100_000, 2)
af.run_live(experiment, problem=problem, out=Path(sys.argv[1]), watch=lambda p: print(p.updates, flush=True))
"""


def mapping_processes():
    """Processes that have models or results of a run in their memory."""
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if "memfd:asyncfed" in (folder / "maps").read_text():
                    found.add(int(folder.name))
            except OSError:
                continue
    return found


@pytest.mark.slow
def test_nothing_is_left_of_a_server_that_was_killed_but_what_it_had_committed(tmp_path):
    before, names = mapping_processes(), set(os.listdir("/dev/shm"))
    command = [sys.executable, "-c", SERVER, str(tmp_path / "live.sqlite"), str(Path(__file__).parents[3])]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        committed = next(updates for updates in map(int, server.stdout) if updates >= 20)
        ours = mapping_processes() - before
        assert server.pid in ours
        assert len(ours) >= 3
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    latest = time.monotonic() + 30
    while ours & mapping_processes() and time.monotonic() < latest:
        time.sleep(0.1)
    assert not ours & mapping_processes()
    assert set(os.listdir("/dev/shm")) <= names
    once = iter([signal.SIGINT])
    resumed = af.resume(
        tmp_path / "live.sqlite",
        problem=LargeProblem(100_000, 2),
        watch=lambda progress: signal.raise_signal(next(once, signal.SIGCONT)),
    )
    assert (resumed.verdict, resumed.participation().sum() >= committed) == ("interrupted", True)
