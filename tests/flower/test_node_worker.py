"""A node's worker: it loads the data once, answers as the ClientApp itself would, and outlives nobody it works for."""

import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.experiment import to_toml
from asyncfed.flower.messages import pack_message, unpack_introduction, unpack_message
from asyncfed.flower.node_app import NodeError
from asyncfed.flower.node_program import NodeProgram
from asyncfed.flower.worker_client import NodeWorker, read_worker_seconds
from asyncfed.live.wire import Result, Task
from asyncfed.uplinks import ErrorFeedback, TopK

TASK = Task(session="secret", ticket=7, base_version=3, work=Work(epochs=2), key=99, dtype="<f8")
MODEL = np.linspace(-1, 1, 11)

APP = """
import os, time
from pathlib import Path

import numpy as np

from asyncfed.flower import client_app

HERE = Path(__file__).parent


def load(client, node):
    with (HERE / "loaded").open("a") as file:
        file.write(f"{os.getpid()}\\n")
    if node.get("broken"):
        raise ValueError("row 7 of /home/ann/patients.csv holds 61.5")
    if node.get("slow"):
        time.sleep(60.0)
    return np.eye(10) * (1 + client), np.arange(10.0)


app = client_app(HERE / "experiment.toml", data=load)
"""


@pytest.fixture
def runtime(monkeypatch):
    """A folder for sockets, with a short path. Whoever still runs at the end is ended."""
    folder = Path(tempfile.mkdtemp(prefix="af-"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def app(tmp_path, monkeypatch, runtime, experiment):
    """The app of a module of its own. Its workers end when the test does."""
    name = f"app_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(APP)
    (tmp_path / "experiment.toml").write_text(to_toml(experiment))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(name).app
    del sys.modules[name]
    for process in loaded_by(tmp_path):
        end(process)


def loaded_by(folder):
    """The processes that loaded the data, one time after another."""
    file = folder / "loaded"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def is_running(process):
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def end(process):
    if is_running(process):
        os.kill(process, signal.SIGKILL)
    wait_for(lambda: not is_running(process))


def wait_for(happened, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ask(app, kind="train", content=None, run=1, state=None, **node):
    content = content or pack_message(TASK, {"model": MODEL})
    message = Message(content, 5, kind)
    message.metadata.__dict__["_message_id"] = "question"
    node = {"partition-id": 1, "worker-seconds": 30, **{key.replace("_", "-"): value for key, value in node.items()}}
    return app(message, Context(run, 5, node, RecordDict() if state is None else state, {})).content


def test_a_worker_loads_the_data_once_and_answers_to_the_last_bit_as_the_app_itself(app, tmp_path):
    who = unpack_introduction(ask(app, "query"))
    replies = [unpack_message(ask(app), Result, 1000) for _ in range(2)]
    [worker] = loaded_by(tmp_path)
    assert worker != os.getpid()
    assert (who.client, who.num_examples) == (1, 10)
    own = [unpack_message(ask(app, worker_seconds=0), Result, 1000)]
    assert loaded_by(tmp_path) == [worker, os.getpid()]
    assert len({arrays["model"].tobytes() for _, arrays in replies + own}) == 1
    assert {result.ticket for result, _ in replies + own} == {7}
    os.remove(tmp_path / "loaded")
    end(worker)


def test_another_run_has_a_worker_of_its_own(app, tmp_path):
    for run in (1, 1, 2):
        ask(app, "query", run=run)
    assert len(set(loaded_by(tmp_path))) == len(loaded_by(tmp_path)) == 2


def test_what_a_node_remembers_goes_through_the_worker(app, tmp_path, experiment):
    work = Work(epochs=1, uplink=(ErrorFeedback(codec=TopK(fraction=0.3)),))
    task = pack_message(Task("s", 7, 3, work, 99, "<f8", memory=-1, uplink_key=5), {"model": MODEL})
    state, own_state = RecordDict(), RecordDict()
    ask(app, content=task, state=state)
    node = {"partition-id": 1, "worker-seconds": 30}
    data = (np.eye(10) * 2, np.arange(10.0))
    NodeProgram(experiment, lambda client, node: data).reply("train", task, node, own_state)
    assert list(state) == list(own_state) == ["asyncfed.tickets", "asyncfed.memory"]
    assert {name: array.data for name, array in state["asyncfed.memory"].items()} == {
        name: array.data for name, array in own_state["asyncfed.memory"].items()
    }


def test_a_worker_that_was_killed_is_replaced(app, tmp_path, runtime):
    ask(app, "query")
    [first] = loaded_by(tmp_path)
    end(first)
    ask(app, "query")
    assert len(loaded_by(tmp_path)) == 2
    assert len(list(runtime.rglob("*.sock"))) == 1


def test_a_worker_killed_at_work_costs_the_task_alone(app, tmp_path):
    threading.Thread(target=lambda: (wait_for(lambda: loaded_by(tmp_path)), end(loaded_by(tmp_path)[0]))).start()
    with pytest.raises(NodeError, match=r"^WorkerEnded$"):
        ask(app, "query", slow=True)
    assert unpack_introduction(ask(app, "query")).num_examples == 10


def test_of_an_exception_in_a_worker_the_class_alone_is_sent_and_the_log_has_the_rest(app, tmp_path, capfd):
    for _ in range(2):
        with pytest.raises(NodeError, match=r"^ValueError$"):
            ask(app, "query", broken=True)
    assert "row 7 of /home/ann/patients.csv holds 61.5" in capfd.readouterr().err
    assert len(set(loaded_by(tmp_path))) == 1


def test_a_module_that_cannot_be_imported_ends_its_worker(app, tmp_path, runtime, capfd):
    [file] = tmp_path.glob("*.py")
    file.write_text("import a_package_that_is_not_here")
    with pytest.raises(NodeError, match=r"^ModuleNotFoundError$"):
        ask(app, "query")
    wait_for(lambda: not list(runtime.rglob("*.sock")))
    assert "a_package_that_is_not_here" in capfd.readouterr().err
    file.write_text(APP)
    assert unpack_introduction(ask(app, "query")).num_examples == 10


def test_a_worker_ends_when_nothing_comes(app, tmp_path, runtime):
    ask(app, "query", worker_seconds=0.3)
    [worker] = loaded_by(tmp_path)
    wait_for(lambda: not is_running(worker))
    assert not list(runtime.rglob("*.sock"))


def test_a_worker_ends_with_its_supernode(app, tmp_path, runtime):
    with subprocess.Popen(["sleep", "60"]) as supernode:
        content, node = RecordDict(), {"partition-id": 1, "worker-seconds": 30}
        context = Context(1, 5, node, RecordDict(), {})
        NodeWorker(f"app_{tmp_path.name}", parent=supernode.pid).answer("query", content, context)
        [worker] = loaded_by(tmp_path)
        assert is_running(worker)
        supernode.kill()
    wait_for(lambda: not is_running(worker))
    assert not list(runtime.rglob("*.sock"))


def test_a_worker_ends_with_a_supernode_that_nobody_has_waited_for(app, tmp_path, runtime):
    with subprocess.Popen(["sleep", "60"]) as supernode:
        context = Context(1, 5, {"partition-id": 1, "worker-seconds": 30}, RecordDict(), {})
        NodeWorker(f"app_{tmp_path.name}", parent=supernode.pid).answer("query", RecordDict(), context)
        [worker] = loaded_by(tmp_path)
        supernode.kill()
        wait_for(lambda: not is_running(worker))  # while the other is a zombie
    assert not list(runtime.rglob("*.sock"))


def test_a_worker_imports_nothing_from_the_working_directory(app, tmp_path, monkeypatch):
    others = tmp_path / "others"
    for name in ("asyncfed", "json", "socket"):
        (others / name).mkdir(parents=True)
        (others / name / "__init__.py").write_text(f"open({str(others / 'reached')!r}, 'w')\nraise ImportError")
    monkeypatch.chdir(others)
    assert unpack_introduction(ask(app, "query")).num_examples == 10
    assert not (others / "reached").exists()


CLIENT = """
import importlib, sys
from flwr.app import Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

for name in ("_run_id", "_node_id", "_task_id"):
    setattr(TaskIdentity, name, 1)
sys.path.insert(0, sys.argv[1])
app = importlib.import_module(sys.argv[2]).app
message = Message(RecordDict(), 5, "query")
message.metadata.__dict__["_message_id"] = "question"
app(message, Context(1, 5, {"partition-id": 1, "slow": True}, RecordDict(), {}))
"""


def test_a_worker_ends_when_the_app_that_waits_for_it_is_gone(app, tmp_path):
    with subprocess.Popen([sys.executable, "-c", CLIENT, str(tmp_path), f"app_{tmp_path.name}"]) as client:
        wait_for(lambda: loaded_by(tmp_path))
        [worker] = loaded_by(tmp_path)
        assert is_running(worker)
        client.kill()
    wait_for(lambda: not is_running(worker))


@pytest.mark.parametrize("where", ["open to others", "too long"])
def test_without_a_private_folder_the_app_answers_by_itself(app, tmp_path, runtime, monkeypatch, where):
    if where == "too long":
        folder = runtime / ("x" * 100)
        folder.mkdir()
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    else:
        folder = runtime / f"asyncfed-{os.getuid()}"
        folder.mkdir()
        folder.chmod(0o755)
    ask(app, "query")
    assert loaded_by(tmp_path) == [os.getpid()]
    os.remove(tmp_path / "loaded")


def test_sockets_are_their_users_alone(app, tmp_path, runtime):
    ask(app, "query")
    [folder] = runtime.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("seconds", [-1, "long", float("inf"), True])
def test_a_time_that_is_none_is_refused(seconds):
    with pytest.raises(ConfigError, match="worker-seconds is"):
        read_worker_seconds({"worker-seconds": seconds})
