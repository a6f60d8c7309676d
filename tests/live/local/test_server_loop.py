"""The server's loop with real processes. The runs are small: what costs time is starting processes."""

import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.live.mischief import (
    MischievousProblem,
    SpyingProblem,
    fail,
    hang,
    hang_always,
    kill_self,
    oversize,
    poison,
    say_hello_again,
    say_hello_at_once,
)
from tests.live.tiny_parts import Corrected, Impatient, SendIf, Shaken

import asyncfed as af
from asyncfed.core.record import UNSET, replace
from asyncfed.core.types import Budget, Work
from asyncfed.experiment import to_toml
from asyncfed.live.checks import Limits
from asyncfed.live.local import client_process, connection
from asyncfed.live.local.local_engine import LocalEngine
from asyncfed.rules import Noised
from asyncfed.runs.live import run_live
from asyncfed.store.schema import DISPATCH, REPORT
from asyncfed.strategies import AFL, FedBuff, FedCompass, MindFlayer, PublishedScripts, Ringleader, Ringmaster
from asyncfed.strategies.samplers import UniformAll
from asyncfed.uplinks import Clip, ErrorFeedback, TopK
from asyncfed.uplinks.chain import SKIPPED_BYTES, declared_size

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)
PATIENT = LocalEngine(task_seconds=0.02)  # slow enough for a process to come back before the run is over


def test_others_are_merged_while_a_slow_client_works(three_clients, tmp_path, events):
    engine = LocalEngine(slow=((1, 10.0),), task_seconds=0.01)
    run = run_live(three_clients(60), engine=engine, out=tmp_path / "live.sqlite")
    merges = run.participation()
    assert merges[1] >= 1
    assert merges[0] > 3 * merges[1]
    assert merges[2] > 3 * merges[1]
    slow = [row.a for row in events(run, "report") if row.client == 1]
    assert min(slow) >= 0.1


def test_a_busy_client_may_be_handed_more_and_does_it_in_order(three_clients, tmp_path, events, check_whole):
    path = tmp_path / "live.sqlite"
    strategy = AFL(concurrency=6, sampler=UniformAll(), aggregate="mixing", work=WORK)
    run = run_live(three_clients(60, strategy=strategy), out=path)
    for client in range(3):
        tickets = [row.ticket for row in events(run, "report") if row.client == client]
        assert tickets == sorted(tickets)
    check_whole(path, 60)


def test_every_process_is_sent_one_shard(three_clients, tmp_path):
    experiment = three_clients(5)
    spy = SpyingProblem(experiment.problem())
    run_live(experiment, problem=spy, out=tmp_path / "live.sqlite")
    assert spy.shards_sent == [0, 1, 2]


def test_a_killed_client_is_noticed_its_ticket_lost_and_it_comes_back(three_clients, tmp_path, events, check_whole):
    path, experiment = tmp_path / "live.sqlite", three_clients(200)
    problem = MischievousProblem(experiment.problem(), 1, kill_self, tmp_path / "killed")
    run = run_live(experiment, engine=PATIENT, problem=problem, out=path)
    (lost,) = events(run, "lost")
    assert (lost.client, lost.detail) == (1, '"its process ended"')
    assert problem.shards_sent == [0, 1, 2, 1]
    back = [row for row in events(run, "report") if row.client == 1 and row.seq > lost.seq]
    assert back
    check_whole(path, 200)


def test_a_hanging_client_loses_its_ticket_and_is_replaced(three_clients, tmp_path, events, check_whole):
    path, experiment = tmp_path / "live.sqlite", three_clients(500)
    problem = MischievousProblem(experiment.problem(), 1, hang, tmp_path / "hung")
    run = run_live(experiment, engine=PATIENT, problem=problem, out=path, limits=Limits(ticket_seconds=1.0))
    lost = events(run, "lost")
    assert {(row.client, row.detail) for row in lost} == {(1, '"no answer within 1 s"')}
    assert problem.shards_sent == [0, 1, 2] + [1] * len(lost)  # more than one if the machine is slow to start another
    check_whole(path, 500)


def test_a_client_that_sends_nonsense_is_set_aside_and_the_rest_go_on(three_clients, tmp_path, events, check_whole):
    path, experiment = tmp_path / "live.sqlite", three_clients(400)
    problem = MischievousProblem(experiment.problem(), 1, poison)
    run = run_live(experiment, problem=problem, out=path, limits=Limits(faults=3))
    assert [row.client for row in events(run, "refused")] == [1, 1, 1]
    assert [row.client for row in events(run, "leave")] == [1]
    assert np.isfinite(run.params).all()
    check_whole(path, 400)


def test_a_body_too_long_is_not_read_and_the_process_is_replaced(three_clients, tmp_path, events, check_whole):
    path, experiment = tmp_path / "live.sqlite", three_clients(200)
    problem = MischievousProblem(experiment.problem(), 1, oversize, tmp_path / "sent")
    run = run_live(experiment, engine=PATIENT, problem=problem, out=path)
    (refused,) = events(run, "refused")
    assert "880 bytes; at most 88 are read" in refused.detail
    assert problem.shards_sent == [0, 1, 2, 1]
    check_whole(path, 200)


def test_a_process_that_keeps_dying_is_given_up(three_clients, tmp_path, events, check_whole):
    path, experiment = tmp_path / "live.sqlite", three_clients(300)
    problem = MischievousProblem(experiment.problem(), 1, kill_self, at=2)
    run = run_live(experiment, engine=LocalEngine(restarts=1, task_seconds=0.03), problem=problem, out=path)
    (left,) = events(run, "leave")
    assert "ended 2 times in a row" in left.detail
    check_whole(path, 300)


def test_a_run_without_anybody_left_ends(three_clients, tmp_path):
    experiment = three_clients(50, clients=1)
    problem = MischievousProblem(experiment.problem(), 0, kill_self, at=2)
    run = run_live(experiment, engine=LocalEngine(restarts=0), problem=problem, out=tmp_path / "live.sqlite")
    assert run.verdict == "starved"


def test_who_says_hello_again_is_at_fault_and_excluded_in_the_end(three_clients, tmp_path, events, check_whole):
    path, experiment = tmp_path / "live.sqlite", three_clients(60)
    problem = MischievousProblem(experiment.problem(), 1, say_hello_again)
    run = run_live(experiment, engine=PATIENT, problem=problem, out=path, limits=Limits(faults=3))
    refused = events(run, "refused")
    assert {(row.client, row.ticket, row.detail) for row in refused} == {(1, None, '"it said hello again"')}
    assert len(refused) == 3  # and it said hello a thousand times
    assert [row.client for row in events(run, "leave")] == [1]
    check_whole(path, 60)


def test_hellos_that_are_repeated_before_the_run_begins_count_when_it_begins(three_clients, tmp_path, events):
    path, experiment = tmp_path / "live.sqlite", three_clients(60)
    problem = MischievousProblem(experiment.problem(), 1, say_hello_at_once, at=1)
    run = run_live(experiment, engine=PATIENT, problem=problem, out=path, limits=Limits(faults=3))
    assert {row.detail for row in events(run, "refused")} == {'"it said hello again"'}
    assert len(events(run, "refused")) <= 3


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("mischief", [poison, hang_always])
def test_a_client_that_is_always_refused_or_never_answers_does_not_stall_afl(
    three_clients, tmp_path, events, check_whole, concurrency, mischief
):
    """Its slot is given up: in the end it has left, and the others do all the work."""
    path = tmp_path / "live.sqlite"
    experiment = three_clients(80, strategy=AFL(concurrency=concurrency, aggregate="latest", work=WORK))
    problem = MischievousProblem(experiment.problem(), 1, mischief, at=2)
    engine = LocalEngine(restarts=1, task_seconds=0.03)
    run = run_live(experiment, engine=engine, problem=problem, out=path, limits=Limits(ticket_seconds=0.5))
    assert run.verdict == "finished"
    assert [row.client for row in events(run, "leave")] == [1]
    assert run.participation()[1] == 0
    check_whole(path, 80)


# ---- what is known of a client's own exceptions ----------------------------------------------------------------------


def test_of_an_exception_in_a_clients_training_the_server_learns_the_class(
    three_clients, tmp_path, events, check_whole
):
    path, experiment = tmp_path / "live.sqlite", three_clients(150)
    problem = MischievousProblem(experiment.problem(), 1, fail, tmp_path / "failed")
    run = run_live(experiment, engine=PATIENT, problem=problem, out=path)
    (lost,) = events(run, "lost")
    assert lost.detail == '"its own code raised ValueError"'
    assert (lost.client, problem.shards_sent) == (1, [0, 1, 2, 1])
    check_whole(path, 150)


FAILING_RUN = """
import sys
import urllib.request
from pathlib import Path

folder, root, port, at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
sys.path.insert(0, root)

from tests.live.mischief import MischievousProblem, fail

from asyncfed.experiment import read_toml
from asyncfed.live.local.local_engine import LocalEngine
from asyncfed.report.trackers.prometheus_endpoint import metrics_endpoint
from asyncfed.runs.live import run_live

experiment, shown = read_toml(folder / "experiment.toml"), []
problem = MischievousProblem(experiment.problem(), 1, fail, at=at)
with metrics_endpoint(port, "failing") as update:

    def watch(progress):
        update(progress)
        shown.append(urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode())

    engine = LocalEngine(restarts=1, task_seconds=0.05)
    print(run_live(experiment, engine=engine, problem=problem, out=folder / "live.sqlite", watch=watch).verdict)
(folder / "shown.metrics").write_text("".join(shown))
"""


def run_with_an_exception(experiment, folder, at):
    """All that a server shows and writes when client 1 raises: standard output and error, metrics, every file."""
    (folder / "experiment.toml").write_text(to_toml(experiment))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", FAILING_RUN, str(folder), str(Path(__file__).parents[3]), str(port), str(at)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    files = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return done.stdout + done.stderr, files


def test_neither_path_nor_cell_of_a_clients_exception_is_in_log_journal_or_metrics(three_clients, tmp_path):
    log, files = run_with_an_exception(three_clients(40), tmp_path, at=2)
    assert "finished" in log
    own = files.pop("client-1.log").decode()
    assert "row 7 of /home/ann/patients.csv holds 61.5" in own  # the client's own log keeps all of it
    assert "Traceback" in own
    assert {"live.sqlite", "shown.metrics"} <= files.keys()
    for name, content in {"log": log.encode(), **files}.items():
        assert b"patients" not in content, name
        assert b"61.5" not in content, name
    assert b"asyncfed_lost" in files["shown.metrics"]


def test_an_exception_before_the_run_begins_is_named_by_its_class_and_where_its_text_is(three_clients, tmp_path):
    log, files = run_with_an_exception(three_clients(40), tmp_path, at=1)
    assert "its own code raised ValueError" in log
    assert "client-1.log" in log
    assert "patients" not in log
    assert b"patients" in files["client-1.log"]


# ---- uplinks, rules, timers ------------------------------------------------------------------------------------------

SPARSE = Work(epochs=1, batch_size=4, learning_rate=0.01, uplink=(ErrorFeedback(codec=TopK(fraction=0.01)),))


def began_anew(run):
    """Reports of clients that had lost what they were to remember."""
    return [row for row in run.journal.event_rows() if row.kind == REPORT and row.memory == -1]


def count_bodies(monkeypatch):
    """How many bytes of numbers pass through the server's sockets: [down, up]."""
    counted = [0, 0]
    read_prefix, write_frame = connection.decode_prefix, client_process.encode

    def read(prefix, max_body_bytes):
        header, body = read_prefix(prefix, max_body_bytes)
        counted[1] += body
        return header, body

    def write(message, arrays=None):
        pieces = write_frame(message, arrays)
        counted[0] += sum(map(len, pieces[1:]))
        return pieces

    monkeypatch.setattr(connection, "decode_prefix", read)
    monkeypatch.setattr(client_process, "encode", write)
    return counted


def test_the_bytes_at_the_sockets_are_those_of_the_ledger(three_clients, tmp_path, monkeypatch, check_whole):
    counted = count_bodies(monkeypatch)
    strategy = FedBuff(concurrency=1, buffer_size=1, work=SPARSE, rule=Corrected())
    run = run_live(three_clients(20, strategy=strategy), out=tmp_path / "live.sqlite")
    rounds, message = run.journal.columns("rounds"), declared_size(SPARSE.uplink, 11, 8)
    assert counted == [rounds["bytes_down"][-1], rounds["bytes_up"][-1]] == [20 * 2 * 88, 20 * message]
    check_whole(tmp_path / "live.sqlite", 20)


@pytest.mark.parametrize("rule", [UNSET, Corrected()], ids=["plain", "corrected"])
def test_a_killed_client_has_lost_its_memory_and_the_journal_says_so(
    three_clients, tmp_path, events, check_whole, rule
):
    path = tmp_path / "live.sqlite"
    strategy = FedBuff(concurrency=3, buffer_size=1, work=SPARSE, rule=rule)
    experiment = three_clients(150, strategy=strategy)
    problem = MischievousProblem(experiment.problem(), 1, kill_self, tmp_path / "killed", at=6)
    run = run_live(experiment, engine=PATIENT, problem=problem, out=path)
    [lost] = [row.seq for row in events(run, "lost")]
    [anew] = began_anew(run)
    assert (anew.client, anew.seq > lost) == (1, True)
    check_whole(path, 150)


def test_a_client_that_does_not_download_keeps_its_own_model(three_clients, tmp_path, events, check_whole):
    path = tmp_path / "live.sqlite"
    experiment = three_clients(90, strategy=PublishedScripts(cohort_size=3, work=WORK))
    problem = MischievousProblem(experiment.problem(), 1, kill_self, tmp_path / "killed", at=6)
    run = run_live(experiment, problem=problem, out=path)
    assert [row.client for row in began_anew(run)] == [1]
    assert run.journal.columns("rounds")["bytes_down"][-1] == 0
    check_whole(path, 90)


def test_a_cancelled_client_stops_waiting_and_takes_its_next_ticket(three_clients, tmp_path, events, check_whole):
    path = tmp_path / "live.sqlite"
    engine = LocalEngine(slow=((0, 300.0),), task_seconds=0.02)  # client 0 would take 6 s
    run = run_live(three_clients(40, strategy=Impatient(seconds=0.15)), engine=engine, out=path)
    cancels = events(run, "cancel")
    assert 0 in {row.client for row in cancels}
    assert run.verdict == "finished"
    assert not events(run, "refused", "lost", "leave")
    check_whole(path, 40)


def test_noise_of_a_live_run_is_replayed_from_its_file(three_clients, tmp_path, check_whole):
    path = tmp_path / "live.sqlite"
    strategy = FedBuff(concurrency=3, buffer_size=2, work=WORK, rule=Shaken())
    run_live(three_clients(20, strategy=strategy), out=path)
    verification = af.verify(path)
    assert verification.ok, verification.lines


def test_clients_clip_and_the_server_adds_noise(three_clients, tmp_path):
    """Noise of the machine's own: two runs differ, and each can be replayed."""
    models = []
    for name in ("one", "other"):
        work = replace(WORK, uplink=(Clip(norm=0.05),))
        rule = Noised(clip=0.05, multiplier=1.0, divisor=2)
        strategy = FedBuff(concurrency=3, buffer_size=2, work=work, rule=rule)
        run = run_live(three_clients(2, strategy=strategy), out=tmp_path / name)
        verification = af.verify(tmp_path / name)
        assert verification.ok, verification.lines
        models.append(run.params)
    assert not np.any(models[0] == models[1])


def test_an_uplink_of_the_users_own_is_known_to_the_processes(three_clients, tmp_path, check_whole):
    path = tmp_path / "live.sqlite"
    work = Work(epochs=1, batch_size=4, learning_rate=0.01, uplink=(SendIf(),))
    run = run_live(three_clients(20, strategy=FedBuff(concurrency=3, buffer_size=1, work=work)), out=path)
    sent = [row.metrics["bytes"] for row in run.journal.event_rows() if row.kind == REPORT]
    rounds = run.journal.columns("rounds")
    assert rounds["skipped"][-1] > 0
    assert rounds["bytes_up"][-1] == sum(sent) + SKIPPED_BYTES * rounds["skipped"][-1]
    check_whole(path, 20)


@pytest.mark.parametrize(
    "strategy",
    [
        Ringmaster(concurrency=3, staleness_threshold=2, work=WORK),
        FedCompass(min_steps=2, max_steps=9, work=WORK),
        MindFlayer(cut_off=0.02, work=WORK),
    ],
    ids=["ringmaster", "fedcompass", "mindflayer"],
)
def test_strategies_that_cancel_or_set_timers_run_live(three_clients, tmp_path, strategy):
    path = tmp_path / "live.sqlite"
    engine = LocalEngine(slow=((1, 20.0),), task_seconds=0.01)
    run = run_live(three_clients(40, strategy=strategy), engine=engine, out=path)
    assert run.verdict == "finished"
    assert {"cancel", "wake"} & set(run.journal.event_columns()["kind"])
    verification = af.verify(path)
    assert verification.ok, verification.lines


def test_clients_are_sent_an_older_model_again(three_clients, tmp_path):
    path = tmp_path / "live.sqlite"
    engine = LocalEngine(slow=((1, 20.0),), task_seconds=0.01)
    experiment = three_clients(strategy=Ringleader(work=WORK), budget=Budget(rounds=3))
    run = run_live(experiment, engine=engine, out=path)
    assert run.verdict == "finished"
    versions = [row.version for row in run.journal.event_rows() if row.kind == DISPATCH]
    assert versions != sorted(versions)
    verification = af.verify(path)
    assert verification.ok, verification.lines
