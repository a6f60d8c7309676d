"""A process is started for every message to a node: it loads what its problem needs, and nothing of the server's."""

import subprocess
import sys

import pytest

from asyncfed.experiment import to_toml

CLIENT = """
import sys
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.supercore.task_identity import TaskIdentity

for name in ("_run_id", "_node_id", "_task_id"):
    setattr(TaskIdentity, name, 1)
flower = set(sys.modules)

import numpy as np
from asyncfed.flower import client_app
from asyncfed.flower.messages import pack_message
from asyncfed.core.types import Work
from asyncfed.live.wire import Task

app = client_app(sys.argv[1], data=lambda client, node: (np.eye(10), np.ones(10)))
task = pack_message(Task("s", 7, 0, Work(), 5, "<f8"), {"model": np.zeros(11)})
message = Message({"query": RecordDict(), "train": task}[sys.argv[2]], 5, sys.argv[2])
message.metadata.__dict__["_message_id"] = "question"
app(message, Context(1, 5, {"partition-id": 0}, RecordDict(), {}))
print(*sorted(set(sys.modules) - flower))
"""

OF_THE_SERVER = {
    *("api", "analysis", "certificates", "cli", "presets", "report", "reproduce", "runs", "sim", "store", "theory"),
    *("testing",),
}
ELSEWHERE = {"matplotlib", "pandas", "rich", "typer", "torch", "sklearn", "pyarrow", "cryptography"}
KERNELS = {"numba", "llvmlite", "scipy"}


def modules_loaded(tmp_path, experiment, kind):
    file = tmp_path / "experiment.toml"
    file.write_text(to_toml(experiment))
    done = subprocess.run([sys.executable, "-c", CLIENT, str(file), kind], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(("kind", "at_most"), [("query", 340), ("train", 820)])
def test_a_client_loads_what_its_problem_needs(tmp_path, experiment, kind, at_most):
    """It was 915 modules, without Flower's own 737, of which compiled kernels need about 470.

    The file of every algorithm, rule, codec, mode of privacy and attack is among them, since an experiment may name
    any: about 0.05 s.
    """
    loaded = modules_loaded(tmp_path, experiment, kind)
    ours = {name.split(".")[1] for name in loaded if name.startswith("asyncfed.")}
    assert not ours & OF_THE_SERVER
    assert not {name.split(".")[0] for name in loaded} & (ELSEWHERE | (KERNELS if kind == "query" else set()))
    assert "scipy.stats" not in loaded
    in_part = tuple(f"asyncfed.{room}." for room in ("flower", "live", "engine"))
    assert {name for name in loaded if name.startswith(in_part)} == {
        *("asyncfed.flower.messages", "asyncfed.flower.node_guard"),
        *("asyncfed.flower.node_memory", "asyncfed.flower.node_program"),
        *("asyncfed.live.client_guard", "asyncfed.live.client_task"),
        *("asyncfed.live.machine_entropy", "asyncfed.live.wire"),
        *("asyncfed.engine.evaluation", "asyncfed.engine.plan", "asyncfed.engine.stopping"),
    }
    assert len(loaded) <= at_most
