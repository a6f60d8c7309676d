"""AsyncFed on Flower: a ServerApp and a ClientApp for any experiment, and a federation on this machine to try them.

    # server_app.py                                     # client_app.py
    from asyncfed.flower import server_app              from asyncfed.flower import client_app
    app = server_app(experiment)                        app = client_app(experiment)

Flower is an extra: pip install 'asyncfed[flower]'. Each function imports what it needs when it is called: a ClientApp
is started anew for every message, and must not load what only its worker or the server needs.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from asyncfed.core.errors import ConfigError

if TYPE_CHECKING:
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp

    from asyncfed.attacks import Attack
    from asyncfed.experiment import Experiment
    from asyncfed.flower.local_federation import Federation
    from asyncfed.flower.node_program import BuildProblem, LoadData, NodeProgram
    from asyncfed.flower.node_registry import LoadTest

__all__ = ["certificates", "client_app", "federation", "node_key", "server_app"]


def server_app(
    experiment: Experiment | Path | str,
    *,
    test_data: LoadTest | str | None = None,
    problem: BuildProblem | str | None = None,
) -> ServerApp:
    """Flower's ServerApp for an experiment.

    Args:
        experiment: The experiment, or the path of its TOML file.
        test_data: `test_data() -> (x, y)` loads rows that the server evaluates the model on; the data for training are
            then the nodes' own. Without it, they are generated as the experiment says, on each node its own client's.
        problem: `problem([(x, y)])` makes what is learnt, where it is not the experiment's own model: a PyTorch module,
            `lambda rows: af.problems.torch_problem(network, "cross_entropy", rows)`. It needs `test_data`. Both may
            be names: "app_first.model:make_problem".

    Returns:
        The app, to be called `app` in the module that `pyproject.toml` names.
    """
    _require_flower()
    from asyncfed.flower.node_program import find_named
    from asyncfed.flower.server_program import make_server_app

    return make_server_app(_read(experiment), find_named(test_data), find_named(problem))


def client_app(
    experiment: Experiment | Path | str,
    *,
    data: LoadData | str | None = None,
    problem: BuildProblem | str | None = None,
    attack: Attack | None = None,
) -> ClientApp:
    """Flower's ClientApp for an experiment.

    Flower starts a process for every message. Called at the top of a module, as the app's `client_app.py` does, the app
    passes messages on to a worker process of its node, which imports that module once and keeps its data loaded.

    Args:
        experiment: The experiment, or the path of its TOML file; the same as the server's.
        data: `data(client, node_settings) -> (x, y)` loads what this node holds, and only that. Without it, the node
            generates its own client's part of what the experiment describes. A name, "app_first.data:load_data", is
            imported where it is needed: by the worker, and not for every message.
        problem: the same function as the server's, or its name, called here with this node's rows. It needs `data`.
        attack: how this node lies, for tests of a federation, such as `af.attacks.SignFlip(scale=10.0)`; None: it is
            honest, or lies if the experiment's `attack` says so.

    Returns:
        The app, to be called `app` in the module that `pyproject.toml` names.
    """
    _require_flower()
    if problem is not None and data is None:
        raise ConfigError("client_app is given a problem, but no data for it. Give it data=..., too.")
    from asyncfed.flower.node_app import make_app
    from asyncfed.flower.worker_role import ROLE

    def make_program() -> NodeProgram:
        from asyncfed.flower.node_program import NodeProgram, find_named

        return NodeProgram(_read(experiment), find_named(data), find_named(problem), attack)

    if ROLE.is_worker:
        ROLE.program = make_program()
        return make_app(ROLE.program.answer)
    caller = sys._getframe(1)
    module = caller.f_globals["__name__"]
    if os.name != "posix" or caller.f_code.co_name != "<module>" or module == "__main__":
        return make_app(make_program().answer)  # a worker could not import the module that makes the app
    from asyncfed.flower.worker_client import WorkerOrOwn

    return make_app(WorkerOrOwn(module, make_program).answer)


def federation(folder: Path, num_nodes: int, *, restart_proof: bool = False, port: int | None = None) -> Federation:
    """A SuperLink and SuperNodes on this machine, not yet started.

    Args:
        folder: Where it keeps its certificates, keys, logs and Flower's own files.
        num_nodes: How many SuperNodes; at least 1.
        restart_proof: Run the ServerApp outside the SuperLink, so that a run outlives a SuperLink that is restarted.
        port: The SuperLink's port on this machine; a free one if None.

    Returns:
        The federation, to be used in a `with` block, which starts and ends its processes.
    """
    _require_flower()
    from asyncfed.flower.local_federation import Federation

    return Federation(folder, num_nodes, restart_proof=restart_proof, port=port)


def certificates(folder: Path, hosts: tuple[str, ...]) -> None:
    """Write `ca.crt`, `server.crt` and their keys for a SuperLink.

    Args:
        folder: Where they are written; an authority that is in it already signs again.
        hosts: The names and addresses by which nodes reach the SuperLink; at least one.
    """
    _require_flower()
    from asyncfed.flower.credentials import make_certificates

    make_certificates(folder, hosts)


def node_key(file: Path) -> Path:
    """Write a node's private key.

    Args:
        file: The file of the private key, which must not exist.

    Returns:
        The file of the public key, to be registered with the SuperLink.
    """
    _require_flower()
    from asyncfed.flower.credentials import make_node_key

    if file.exists():
        raise ConfigError(f"{file} exists already, and an overwritten key is lost; nothing was written.")
    return make_node_key(file)


def _read(experiment: Experiment | Path | str) -> Experiment:
    from asyncfed.experiment import Experiment, read_toml

    return experiment if isinstance(experiment, Experiment) else read_toml(experiment)


def _require_flower() -> None:
    if find_spec("flwr") is None:
        raise ConfigError("Flower is not installed here. Install it with: pip install 'asyncfed[flower]'")
