"""A process is started for every message to a node: it loads what passes the message on, and its worker the rest."""

import subprocess
import sys

import pytest

from asyncfed.experiment import to_toml

APP = """
from pathlib import Path
from asyncfed.flower import client_app

HERE = Path(__file__).parent
app = client_app(HERE / "experiment.toml", data="rows:load")
"""
ROWS = """
import numpy as np


def load(client, node):
    return np.eye(10), np.ones(10)
"""
CLIENT = """
import sys
import flwr.supernode.runtime.run_clientapp
from flwr.app import Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

for name in ("_run_id", "_node_id", "_task_id"):
    setattr(TaskIdentity, name, 1)
sys.path.insert(0, sys.argv[1])
flower = set(sys.modules)

from node_app import app

kind, worker_seconds = sys.argv[2], float(sys.argv[3])
content = RecordDict()
if kind == "train":
    import numpy as np
    from asyncfed.core.types import Work
    from asyncfed.flower.messages import pack_message
    from asyncfed.live.wire import Task

    content = pack_message(Task("s", 7, 0, Work(), 5, "<f8"), {"model": np.zeros(11)})
message = Message(content, 5, kind)
message.metadata.__dict__["_message_id"] = "question"
app(message, Context(1, 5, {"partition-id": 0, "worker-seconds": worker_seconds}, RecordDict(), {}))
print(*sorted(set(sys.modules) - flower))
"""

OF_THE_SERVER = {
    *("api", "analysis", "certificates", "cli", "presets", "report", "reproduce", "runs", "sim", "store", "theory"),
    *("testing",),
}
ELSEWHERE = {"matplotlib", "pandas", "rich", "typer", "torch", "sklearn", "pyarrow", "cryptography"}
KERNELS = {"numba", "llvmlite", "scipy"}


@pytest.fixture
def modules_loaded(tmp_path, experiment):
    """The modules that a ClientApp loads for a message, besides Flower's own and what Flower loads."""

    def load(kind, worker_seconds):
        (tmp_path / "node_app.py").write_text(APP)
        (tmp_path / "rows.py").write_text(ROWS)
        (tmp_path / "experiment.toml").write_text(to_toml(experiment))
        command = [sys.executable, "-c", CLIENT, str(tmp_path), kind, str(worker_seconds)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return load


def test_an_app_with_a_worker_loads_what_passes_the_message_on(modules_loaded):
    """It was 335 modules for a query and 769 for a task, and 0.06 and 0.46 s of computing."""
    loaded = modules_loaded("query", 0.2)
    assert [name for name in loaded if name.startswith("asyncfed")] == [
        *("asyncfed", "asyncfed.core", "asyncfed.core.errors", "asyncfed.core.record"),
        *("asyncfed.flower", "asyncfed.flower.node_app", "asyncfed.flower.worker_client"),
        *("asyncfed.flower.worker_messages", "asyncfed.flower.worker_role"),
    ]
    assert "rows" not in loaded
    assert len(loaded) <= 30, loaded


@pytest.mark.parametrize(("kind", "at_most"), [("query", 345), ("train", 785)])
def test_without_a_worker_a_client_loads_what_its_problem_needs(modules_loaded, kind, at_most):
    """Compiled kernels need about 430 of them.

    The file of every algorithm, rule, codec, mode of privacy and attack is among them, since an experiment may name
    any: about 0.05 s.
    """
    loaded = modules_loaded(kind, 0)
    ours = {name.split(".")[1] for name in loaded if name.startswith("asyncfed.")}
    assert not ours & OF_THE_SERVER
    assert not {name.split(".")[0] for name in loaded} & (ELSEWHERE | (KERNELS if kind == "query" else set()))
    assert "scipy.stats" not in loaded
    in_part = tuple(f"asyncfed.{room}." for room in ("flower", "live", "engine"))
    assert {name for name in loaded if name.startswith(in_part)} == {
        *("asyncfed.flower.messages", "asyncfed.flower.node_app", "asyncfed.flower.node_guard"),
        *("asyncfed.flower.node_memory", "asyncfed.flower.node_program"),
        *("asyncfed.flower.worker_client", "asyncfed.flower.worker_messages", "asyncfed.flower.worker_role"),
        *("asyncfed.live.client_guard", "asyncfed.live.client_task"),
        *("asyncfed.live.machine_entropy", "asyncfed.live.wire"),
        *("asyncfed.engine.evaluation", "asyncfed.engine.plan", "asyncfed.engine.stopping"),
    }
    assert len(loaded) <= at_most
