"""Live runs on a cluster of two nodes, with actors, nodes and the driver killed. What costs time is starting actors."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.cluster.conftest import HEAD, SECOND, descendants, wait_until
from tests.live.mischief import MischievousProblem, fail, hang, kill_self, oversize, poison
from tests.live.test_kill import events_in
from tests.live.tiny_parts import Impatient

import asyncfed as af
from asyncfed.cluster.connection import Connection
from asyncfed.cluster.live_engine import RayEngine
from asyncfed.core.record import replace
from asyncfed.core.types import Work
from asyncfed.data import PaperRegression
from asyncfed.live.checks import Limits
from asyncfed.runs.live import run_live
from asyncfed.store.schema import REPORT
from asyncfed.strategies import AFL, FedBuff
from asyncfed.uplinks import ErrorFeedback, TopK

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


@pytest.fixture(scope="module")
def connection(head):
    """One for all runs of this process: it saves each of them the check of the nodes' processes."""
    with Connection(head.address) as one:
        yield one


@pytest.fixture
def engine(head, second, connection):
    """`engine(...)`: the cluster's, with three clients in as many processes unless it is told otherwise."""

    def make(**how):
        return RayEngine(**{"address": head.address, "task_seconds": 0.02, **how})

    return make


def hosts_on(node):
    """The processes of clients on a node, by Ray's own name for them."""
    found = []
    for pid in descendants(node.process.pid):
        try:
            name = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"ray::ClientHost" in name:
            found.append(pid)
    return found


class AtUpdate:
    """Does something, once, when so many updates are merged."""

    def __init__(self, updates, act):
        self.updates, self.act, self.done = updates, act, False

    def __call__(self, progress):
        if progress.updates >= self.updates and not self.done:
            self.done = True
            self.act()


def test_clients_are_on_the_nodes_named_for_them_and_the_run_can_be_replayed(
    engine, head, second, three_clients, tmp_path, check_whole
):
    path, seen = tmp_path / "live.sqlite", []
    there = engine(nodes=((0, SECOND), (1, SECOND), (2, HEAD)), clients_per_process=2)
    watch = AtUpdate(20, lambda: seen.extend([len(hosts_on(head)), len(hosts_on(second))]))
    run = run_live(three_clients(120), engine=there, out=path, watch=watch)
    assert run.verdict == "finished"
    assert seen == [1, 1]  # clients 0 and 1 share a process
    assert run.header["live"]["engine"]["kind"] == "ray"
    check_whole(path, 120)
    assert wait_until(lambda: not hosts_on(head) and not hosts_on(second))


def test_large_models_and_memories_travel_and_a_killed_actor_begins_anew(
    engine, three_clients, tmp_path, events, check_whole
):
    """Of 160 KB: the model goes through the object store, its sparse change with the call."""
    path = tmp_path / "live.sqlite"
    work = replace(WORK, learning_rate=1e-6, uplink=(ErrorFeedback(codec=TopK(fraction=0.05)),))
    experiment = three_clients(
        60,
        strategy=FedBuff(concurrency=3, buffer_size=1, work=work),
        data=PaperRegression(num_samples=24, num_features=20_000),
    )
    problem = MischievousProblem(experiment.problem(), 1, kill_self, tmp_path / "killed", at=4)
    run = run_live(experiment, engine=engine(task_seconds=0.3), problem=problem, out=path)
    (lost,) = events(run, "lost")
    assert (lost.client, lost.detail) == (1, '"its process ended"')
    assert [(row.kind, row.client) for row in events(run, "leave", "join")] == [("leave", 1), ("join", 1)]
    anew = [row.client for row in run.journal.event_rows() if row.kind == REPORT and row.memory == -1]
    assert anew.count(1) <= 2
    assert any(row.client == 1 and row.seq > lost.seq for row in events(run, "report"))
    check_whole(path, 60)


def test_an_actor_killed_from_outside_while_it_has_nothing_to_do_is_noticed(
    engine, head, second, three_clients, tmp_path, events, check_whole
):
    path = tmp_path / "live.sqlite"
    strategy = AFL(concurrency=1, aggregate="mixing", work=WORK)

    def kill_one():
        os.kill(hosts_on(second)[0], signal.SIGKILL)

    there = engine(nodes=((0, HEAD), (1, HEAD), (2, SECOND)), task_seconds=0.05)
    run = run_live(three_clients(200, strategy=strategy), engine=there, out=path, watch=AtUpdate(5, kill_one))
    assert [(row.kind, row.client) for row in events(run, "leave", "join")] == [("leave", 2), ("join", 2)]
    check_whole(path, 200)


def test_clients_of_a_killed_node_go_elsewhere_if_they_may_and_else_stay_away(
    engine, head, second, three_clients, tmp_path, events, check_whole
):
    """Client 1 belongs to the second node; client 2 was put there because it had to be somewhere."""
    path = tmp_path / "live.sqlite"
    there = engine(nodes=((1, SECOND),), task_seconds=0.1)
    watch = AtUpdate(10, second.kill)
    run = run_live(three_clients(300), engine=there, out=path, watch=watch)
    assert run.verdict == "finished"
    assert [row.client for row in events(run, "join")] == [2]
    assert sorted(row.client for row in events(run, "leave")) == [1, 2]
    check_whole(path, 300)


@pytest.mark.parametrize("mischief", [fail, poison, hang, oversize])
def test_clients_that_misbehave_do_not_stop_the_others(engine, three_clients, tmp_path, events, check_whole, mischief):
    updates = 300 if mischief is hang else 60
    path, experiment = tmp_path / "live.sqlite", three_clients(updates)
    once = None if mischief is poison else tmp_path / "done"
    problem = MischievousProblem(experiment.problem(), 1, mischief, once)
    limits = Limits(faults=3, ticket_seconds=1.0 if mischief is hang else 600.0)
    run = run_live(experiment, engine=engine(), problem=problem, out=path, limits=limits)
    check_whole(path, updates)
    refused, lost, left = events(run, "refused"), events(run, "lost"), events(run, "leave")
    assert {row.client for row in [*refused, *lost, *left]} == {1}
    if mischief is fail:
        assert [row.detail for row in lost] == ['"its own code raised ValueError"']
        assert "patients.csv" in (tmp_path / "live.sqlite.clients" / "client-1.log").read_text()
    elif mischief is poison:
        assert len(refused) == 3
        assert not events(run, "join")
    elif mischief is hang:
        assert lost[0].detail == '"no answer within 1 s"'
    else:
        assert "880 bytes; at most 88 are read" in refused[0].detail


def test_a_cancelled_client_stops_waiting_and_takes_its_next_ticket(
    engine, three_clients, tmp_path, events, check_whole
):
    path = tmp_path / "live.sqlite"
    there = engine(slow=((0, 300.0),), clients_per_process=3)  # client 0 would take 6 s
    run = run_live(three_clients(30, strategy=Impatient(seconds=0.4)), engine=there, out=path)
    assert 0 in {row.client for row in events(run, "cancel")}
    assert not events(run, "refused", "lost", "leave")
    check_whole(path, 30)


def test_a_client_that_cannot_start_says_where_its_log_is(engine, three_clients, tmp_path):
    experiment = three_clients()
    problem = MischievousProblem(experiment.problem(), 1, fail, at=1)
    with pytest.raises(af.errors.AsyncFedError, match=r"client 1 could not start: .* ValueError. .*client-1.log"):
        run_live(experiment, engine=engine(), problem=problem, out=tmp_path / "live.sqlite")


DRIVER = """
import sys
import asyncfed as af

experiment = af.read_toml(sys.argv[1])
engine = af.RayEngine(address=sys.argv[3], clients_per_process=2, task_seconds=0.005)
af.run_live(experiment, engine=engine, out=sys.argv[2])
"""


def test_a_killed_driver_takes_its_actors_with_it_and_the_run_is_resumed(
    engine, head, second, three_clients, tmp_path, check_whole
):
    path, described = tmp_path / "live.sqlite", tmp_path / "experiment.toml"
    described.write_text(af.to_toml(three_clients(400)))
    command = [sys.executable, "-c", DRIVER, str(described), str(path), head.address]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as driver:
        assert wait_until(lambda: events_in(path) > 150, 90), driver.stderr.read()
        assert len(hosts_on(head)) + len(hosts_on(second)) == 2
        driver.kill()
        driver.communicate(timeout=60)
    before = merges_in(path)
    assert 30 < before < 400
    assert wait_until(lambda: not hosts_on(head) and not hosts_on(second))
    resumed = af.resume(path)
    assert resumed.verdict == "finished"
    assert resumed.participation().sum() == 400
    check_whole(path, 400)


def merges_in(path):
    run = af.load(path)
    count = run.journal.event_columns()["kind"].count("merge")
    run.journal.close()
    return count


def test_an_interrupted_run_waits_for_what_is_being_computed(engine, three_clients, tmp_path, events, check_whole):
    path = tmp_path / "live.sqlite"
    stop = AtUpdate(10, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))
    run = run_live(three_clients(60), engine=engine(clients_per_process=3), out=path, watch=stop)
    assert run.verdict == "interrupted"
    run.journal.close()
    assert af.resume(path).verdict == "finished"
    check_whole(path, 60)


def test_the_command_line_runs_clients_on_the_cluster(cli, engine, head, tmp_path, check_whole):
    path = tmp_path / "live.sqlite"
    options = ("--num-clients", 3, "--rounds", 4, "--node", f"1={SECOND}", "--clients-per-process", 2)
    result = cli("live", "regression", *options, "--engine", "ray", "--cluster", head.address, "--out", path)
    assert result.code == 0, result.err
    written = af.load(path).header["live"]["engine"]
    assert (written["address"], written["nodes"], written["clients_per_process"]) == (head.address, [[1, SECOND]], 2)
    check_whole(path, 4)
