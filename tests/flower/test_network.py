"""The real thing on this machine: a SuperLink with TLS and node authentication, nodes, and what befalls them."""

import json
import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

import asyncfed as af
from asyncfed.analysis.filtered_updates import filtered_clients
from asyncfed.attacks import Liars, SignFlip
from asyncfed.core.errors import JournalError
from asyncfed.core.types import Budget, Work
from asyncfed.data import IID, PaperRegression
from asyncfed.experiment import to_toml
from asyncfed.flower import federation
from asyncfed.flower.credentials import make_certificates, make_node_key
from asyncfed.flower.local_federation import CONNECTION, HOST, free_port
from asyncfed.flower.new_app import write_app
from asyncfed.rules import Scaffold
from asyncfed.store.journal import Journal
from asyncfed.store.schema import KIND_NAMES
from asyncfed.strategies import AFL, FedAvg
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.uplinks import ErrorFeedback, TopK

UPDATES = 18
PATIENCE = 300.0

SLOW_CLIENT = """
import os, time
from pathlib import Path

from asyncfed.experiment import read_toml
from asyncfed.flower import client_app

EXPERIMENT = Path(__file__).parent.parent / "experiment.toml"


def with_a_moment_to_be_killed_in(client, node):
    (Path(os.environ["FLWR_HOME"]) / f"at-work-{client}").touch()
    time.sleep(1.0)
    return read_toml(EXPERIMENT).clients().client(client)


def without_a_worker():  # not called at the top of the module, so that every message loads the data and leaves a mark
    return client_app(EXPERIMENT, data=with_a_moment_to_be_killed_in)


app = without_a_worker()
"""
SERVER = """
from pathlib import Path

from asyncfed.flower import server_app

app = server_app(Path(__file__).parent.parent / "experiment.toml")
"""


@pytest.fixture(scope="module")
def experiment():
    work = Work(epochs=5, batch_size=16, learning_rate=0.02)
    return af.Experiment(
        name="network",
        num_clients=4,
        data=PaperRegression(num_samples=2000),
        split=IID(),
        strategy=AFL(concurrency=3, work=work, schedule=ConstantRate()),
        budget=Budget(updates=UPDATES),
    )


@pytest.fixture(scope="module")
def app(tmp_path_factory, experiment):
    return write_slow_app(tmp_path_factory.mktemp("apps") / "network", experiment)


def write_slow_app(folder, experiment):
    """An app whose tasks last long enough for its nodes to be killed in one."""
    write_app(folder, experiment.num_clients)
    (folder / "experiment.toml").write_text(to_toml(experiment))
    (folder / f"app_{folder.name}" / "client_app.py").write_text(SLOW_CLIENT)
    (folder / f"app_{folder.name}" / "server_app.py").write_text(SERVER)
    return folder


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """Three nodes; clients 0, 1, 2 of 4. Afterwards nothing of it is left running."""
    with federation(tmp_path_factory.mktemp("network"), 3) as here:
        wait_for(lambda: len(nodes_online(here)) == 3, "three nodes to be online")
        yield here
    wait_for(lambda: not processes(here, ""), "its processes to end", 60.0)


def processes(here, command):
    """Processes that belong to this federation, whoever their parent is by now."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if command in words and f"FLWR_HOME={here.home}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def wait_for(happened, what, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not (answer := happened()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.2)
    return answer


def events(file, *kinds):
    if not file.exists():
        return []
    try:
        return [event for event in Journal.open(file).event_rows() if KIND_NAMES[event.kind] in kinds]
    except JournalError:  # it has just been made
        return []


def start(here, app, journal, stream=False, **config):
    words = " ".join([f'journal="{journal}"', *(f"{key.replace('_', '-')}={value}" for key, value in config.items())])
    return here.flwr("run", str(app), CONNECTION, "--run-config", words, *(["--stream"] if stream else []))


def log_of(here, name):
    return (here.folder / "logs" / f"{name}.log").read_text()


def nodes_online(here):
    listed = json.loads(here.flwr("supernode", "list", CONNECTION, "--format", "json"))
    return [node for node in listed["nodes"] if node["status"] == "online"]


# ---- who is not let in -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def turned_away(network, tmp_path_factory):
    """What four SuperNodes said that tried to join and should not have been let in. All at once, to save time."""
    folder, ours = tmp_path_factory.mktemp("strangers"), ("--root-certificates", str(network.certificates / "ca.crt"))
    make_node_key(folder / "key")
    make_certificates(folder / "authority")
    strangers = {
        "unregistered": (*ours, "--auth-supernode-private-key", str(folder / "key")),
        "keyless": ours,
        "misled": (
            *("--root-certificates", str(folder / "authority" / "ca.crt")),
            *("--auth-supernode-private-key", str(network.folder / "keys" / "node-0")),
        ),
        "plain": ("--insecure",),
    }
    for name, how in strangers.items():
        network.spawn(
            name,
            *("flower-supernode", "--superlink", network.address, *how, "--max-wait-time", "4", "--max-retries", "2"),
            *("--host", HOST, "--port", str(free_port()), "--node-config", "partition-id=3"),
        )
    for name in strangers:
        with suppress(subprocess.TimeoutExpired):
            network.processes[name].wait(120)
        network.end(name)
    assert len(nodes_online(network)) == 3
    return {name: log_of(network, name) for name in strangers}


@pytest.mark.parametrize(
    ("stranger", "complaint"),
    [
        ("unregistered", "failed to activate supernode"),
        ("keyless", "must be registered"),
        ("misled", "certificate"),
        ("plain", "disconnected"),
    ],
)
def test_a_stranger_is_not_let_in(turned_away, stranger, complaint):
    said = turned_away[stranger]
    assert "SuperNode ID" not in said  # what one that was let in says
    assert complaint in said.lower(), said


def test_plain_text_is_not_understood(network):
    with socket.create_connection((HOST, network.port), timeout=5) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with suppress(ConnectionError):
            assert not connection.recv(4096).startswith(b"HTTP")


# ---- a run that is disturbed -----------------------------------------------------------------------------------------


def kill_at_work(here, client):
    """kill -9 of a node and its ClientApp in the middle of a task."""
    mark = here.home / f"at-work-{client}"
    mark.unlink(missing_ok=True)
    wait_for(mark.exists, f"client {client} to be at work")
    node = here.processes.pop(f"node-{client}")
    os.killpg(node.pid, signal.SIGKILL)
    node.wait()


def kill_server_app(here):
    [server] = processes(here, "flwr-serverapp")
    os.kill(server, signal.SIGKILL)
    wait_for(lambda: server not in processes(here, "flwr-serverapp"), "the ServerApp to be gone")


def test_a_node_dies_one_comes_and_the_server_is_restarted(network, app, experiment):
    journal = network.folder / "disturbed.sqlite"
    began = time.monotonic()
    start(network, app, journal, ttl=30.0, wait_nodes=3)
    wait_for(lambda: len(events(journal, "merge")) >= 3, "the first merges")
    kill_at_work(network, 1)
    network.start_node(3)
    wait_for(lambda: [row for row in events(journal, "report") if row.client == 3], "the new node's first update")
    wait_for(
        lambda: [row for row in events(journal, "lost", "leave") if row.client == 1], "the dead node to be noticed"
    )
    before = [row.ticket for row in events(journal, "merge")]
    kill_server_app(network)
    assert len(before) < UPDATES
    start(network, app, journal, ttl=30.0)
    wait_for(lambda: events(journal, "stop"), "the run to end")
    run = wait_for(lambda: af.load(journal).finished and af.load(journal), "the run to be sealed")
    print(f"\ntook {time.monotonic() - began:.0f} s")

    merges = events(journal, "merge")
    tickets = [row.ticket for row in merges]
    assert len(tickets) == len(set(tickets)) == UPDATES
    assert tickets[: len(before)] == before
    assert [row.version for row in merges] == list(range(1, UPDATES + 1))
    assert {row.client for row in events(journal, "join")} >= {3}
    assert {row.reason for row in events(journal, "lost")} >= {"the server was restarted"}
    assert run.verdict == "finished"
    undisturbed = af.run(experiment)
    first, last = undisturbed.evaluations["objective"][[0, -1]]
    assert first > 1000 * last
    assert run.evaluations["objective"][-1] < 1.5 * last  # whose update came last differs, and it weighs most
    verification = af.verify(journal)
    assert verification.ok, verification.lines


def test_a_finished_run_is_not_run_again(network, app):
    journal = network.folder / "disturbed.sqlite"
    before = af.load(journal).sha256
    assert "is finished already (all 18 updates are merged); nothing to do" in start(network, app, journal, stream=True)
    assert af.load(journal).sha256 == before


# ---- from an empty folder, as the documents say ----------------------------------------------------------------------


def use_three_nodes(network):
    """Nodes 0, 1 and 2, whatever the tests before have left."""
    if "node-1" not in network.processes:
        network.start_node(1)
    if "node-3" in network.processes:
        network.end("node-3")


def test_the_app_that_is_written_for_a_beginner_learns(network, tmp_path):
    first = tmp_path / "first"
    write_app(first, 3)
    description = first / "experiment.toml"
    description.write_text(description.read_text().replace("rounds = 10", "rounds = 4"))
    use_three_nodes(network)
    journal = network.folder / "first.sqlite"
    start(network, first, journal)
    run = wait_for(lambda: journal.exists() and af.load(journal).finished and af.load(journal), "the run to end")
    objective = run.evaluations["objective"]
    assert objective[-1] < objective[0] / 10


# ---- an exception on a node ------------------------------------------------------------------------------------------

FAILING_CLIENT = """
from pathlib import Path

from asyncfed.experiment import read_toml
from asyncfed.flower import client_app

EXPERIMENT = Path(__file__).parent.parent / "experiment.toml"


def with_a_broken_row(client, node):
    if client == 1:
        file, cell = "/".join(["", "home", "ann", "patients.csv"]), 60 + 1.5  # not in the app's source, which all have
        raise ValueError(f"row 7 of {file} holds {cell}")
    return read_toml(EXPERIMENT).clients().client(client)


app = client_app(EXPERIMENT, data=with_a_broken_row)
"""
PLANTED = (b"/home/ann/patients.csv", b"61.5")


def test_neither_path_nor_cell_of_a_nodes_exception_reaches_the_server(network, tmp_path, experiment):
    """Not its log, not the journal, not even Flower's own database; the node's log keeps all of it."""
    strategy = AFL(concurrency=3, work=Work(epochs=1, batch_size=16, learning_rate=0.01), schedule=ConstantRate())
    failing = af.replace(experiment, name="failing", num_clients=3, strategy=strategy, budget=Budget(updates=4))
    app = write_slow_app(tmp_path / "failing", failing)
    (app / "app_failing" / "client_app.py").write_text(FAILING_CLIENT)
    use_three_nodes(network)
    journal = network.folder / "failing.sqlite"
    said = start(network, app, journal, stream=True, wait_nodes=2)
    assert "is refused: its node reports error 2: ValueError" in said
    own = (network.folder / "logs" / "node-1.log").read_bytes()
    assert all(text in own for text in PLANTED)
    assert af.load(journal).finished
    of_server = {"said": said.encode()}
    for path in network.folder.rglob("*"):
        with suppress(OSError):  # a directory, or what SQLite has just removed
            of_server[path.name] = path.read_bytes()
    del of_server["node-1.log"]
    assert {"failing.sqlite", "superlink.log", "state.db"} <= of_server.keys()
    assert [name for name, content in of_server.items() if any(text in content for text in PLANTED)] == []


# ---- a node that lies ------------------------------------------------------------------------------------------------

HONEST_CLIENT = """
from pathlib import Path

from asyncfed.flower import client_app

app = client_app(Path(__file__).parent.parent / "experiment.toml")
"""


def test_one_of_five_nodes_lies_and_the_run_ends_near_an_honest_one(tmp_path, experiment):
    """Sign flip times ten; `robust = true` is in the app that is written for a beginner."""
    work = Work(epochs=5, batch_size=16, learning_rate=0.02)
    strategy = AFL(concurrency=5, work=work, schedule=ConstantRate())
    honest = af.replace(experiment, name="liar", num_clients=5, strategy=strategy, budget=Budget(updates=30))
    lying = af.replace(honest, attack=Liars(attack=SignFlip(scale=10.0), clients=(2,)))
    app = write_slow_app(tmp_path / "liar", lying)
    (app / "app_liar" / "client_app.py").write_text(HONEST_CLIENT)  # as the experiment says, lies included
    assert "robust = true" in (app / "pyproject.toml").read_text()
    with federation(tmp_path / "liars", 5) as here:
        wait_for(lambda: len(nodes_online(here)) == 5, "five nodes to be online")
        journal = here.folder / "liar.sqlite"
        said = start(here, app, journal, stream=True, wait_nodes=5)
    assert "robust: each update is compared with the latest of all 5 clients; up to 1 liar" in said
    run = af.load(journal)
    assert run.finished
    measure = lying.problem().evaluate
    wanted, reached = (measure(params)["objective"] for params in (af.run(honest).params, run.params))
    print(f"\nhonest {wanted:.4g}, 1 of 5 lies {reached:.4g}, undefended {af.run(lying).final['objective']:.4g}")
    assert reached < 2 * wanted
    rows = {row.client: row for row in filtered_clients(run.journal.event_rows())}
    assert rows[2].share > 0.5
    verification = af.verify(journal)
    assert verification.ok, verification.lines


# ---- clients that remember -------------------------------------------------------------------------------------------


def test_a_node_that_was_restarted_has_lost_its_memory_and_says_so(network, tmp_path, experiment):
    work = Work(epochs=1, batch_size=16, learning_rate=0.01, uplink=(ErrorFeedback(codec=TopK(fraction=0.3)),))
    budget, strategy = Budget(rounds=6), FedAvg(cohort_size=3, work=work)
    app = write_slow_app(
        tmp_path / "sparse", af.replace(experiment, name="sparse", num_clients=3, strategy=strategy, budget=budget)
    )
    use_three_nodes(network)
    journal = network.folder / "sparse.sqlite"
    start(network, app, journal, ttl=60.0, wait_nodes=3)
    wait_for(lambda: [row for row in events(journal, "report") if row.client == 1], "client 1's first update")
    network.end("node-1")  # a node killed with -9 may come back only when the SuperLink has missed it, in a minute
    network.start_node(1)
    run = wait_for(lambda: journal.exists() and af.load(journal).finished and af.load(journal), "the run to end")
    anew = [row.client for row in events(journal, "report") if row.memory == -1]
    assert anew == [1]
    sent = len(events(journal, "report"))
    assert run.rounds["bytes_up"][-1] == sent * work.uplink[0].size(11, 8) == sent * (4 * 8 + 2)
    verification = af.verify(journal)
    assert verification.ok, verification.lines


# ---- a rule that sends vectors along ---------------------------------------------------------------------------------


def test_scaffold_survives_a_node_that_is_killed(network, tmp_path, experiment):
    work = Work(epochs=1, batch_size=16, learning_rate=0.01)
    strategy = AFL(concurrency=2, aggregate="delta_mean", work=work, schedule=ConstantRate(), rule=Scaffold())
    scaffold = af.replace(experiment, name="scaffold", num_clients=3, strategy=strategy, budget=Budget(updates=8))
    app = write_slow_app(tmp_path / "scaffold", scaffold)
    use_three_nodes(network)
    journal = network.folder / "scaffold.sqlite"
    start(network, app, journal, ttl=15.0, wait_nodes=3)
    wait_for(lambda: len(events(journal, "merge")) >= 2, "the first merges")
    kill_at_work(network, 2)
    run = wait_for(lambda: journal.exists() and af.load(journal).finished and af.load(journal), "the run to end")
    assert 2 in {row.client for row in events(journal, "lost", "leave")}  # on a busy machine others are late too
    sent = len(events(journal, "dispatch"))
    assert run.rounds["bytes_down"][-1] <= sent * 2 * 11 * 8  # the model, and as much again
    assert run.evaluations["objective"][-1] < run.evaluations["objective"][0] / 2
    verification = af.verify(journal)
    assert verification.ok, verification.lines


# ---- the SuperLink is restarted --------------------------------------------------------------------------------------


def test_a_run_outlives_a_superlink_that_is_killed(tmp_path, app):
    """With --restart-proof the ServerApp is no child of the SuperLink, and a database remembers nodes and messages."""
    with federation(tmp_path / "proof", 2, restart_proof=True) as here:
        journal = here.folder / "proof.sqlite"
        start(here, app, journal, ttl=30.0, wait_nodes=2)
        wait_for(lambda: len(events(journal, "merge")) >= 2, "the first merges")
        [server] = processes(here, "flwr-serverapp")
        superlink = here.processes.pop("superlink")
        superlink.kill()
        superlink.wait()
        merged = len(events(journal, "merge"))
        here.start_superlink()
        wait_for(lambda: len(events(journal, "merge")) >= merged + 3, "merges after the restart")
        assert processes(here, "flwr-serverapp") == [server]
        assert "the server was restarted" not in str(events(journal, "lost"))
    wait_for(lambda: not processes(here, ""), "its processes to end", 60.0)


# ---- a node is away --------------------------------------------------------------------------------------------------


def test_a_node_that_is_cut_off_in_a_task_is_missed_and_welcome_when_it_is_back(network, tmp_path, experiment):
    """Stopped with its ClientApp for longer than Flower calls a node online: a line that is down, a laptop asleep."""
    strategy = AFL(concurrency=3, work=Work(epochs=1, batch_size=16, learning_rate=0.01), schedule=ConstantRate())
    away = af.replace(experiment, name="away", num_clients=3, strategy=strategy, budget=Budget(updates=1000))
    app = write_slow_app(tmp_path / "away", away)
    use_three_nodes(network)
    journal = network.folder / "away.sqlite"
    start(network, app, journal, ttl=60.0, wait_nodes=3)
    wait_for(lambda: [row for row in events(journal, "report") if row.client == 2], "client 2's first update")
    mark = network.home / "at-work-2"
    mark.unlink(missing_ok=True)
    wait_for(mark.exists, "client 2 to be at work")
    group = network.processes["node-2"].pid
    os.killpg(group, signal.SIGSTOP)
    try:
        wait_for(lambda: [row for row in events(journal, "leave") if row.client == 2], "the node to be missed")
        merged = len(events(journal, "merge"))
    finally:
        os.killpg(group, signal.SIGCONT)
    wait_for(lambda: [row for row in events(journal, "join") if row.client == 2], "the node to introduce itself")
    back = events(journal, "join")[-1].seq
    wait_for(
        lambda: [row for row in events(journal, "report") if row.client == 2 and row.seq > back], "its next update"
    )
    assert {row.client for row in events(journal, "report")} == {0, 1, 2}
    assert len(events(journal, "merge")) > merged
    assert not any(row.is_fault for row in events(journal, "refused"))
    kill_server_app(network)
