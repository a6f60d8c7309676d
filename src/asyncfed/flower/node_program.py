"""NodeProgram: what a node does with a message. It holds the data of one client, and sends none of them.

Where there is no worker process, it is loaded for every message, so this module imports only what a task needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from flwr.app import Context, MessageType, RecordDict
from flwr.clientapp import ClientApp

from asyncfed.attacks import Attack, lying_node, without_liars
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET
from asyncfed.data import Clients
from asyncfed.experiment import Experiment
from asyncfed.flower.messages import Introduction, pack_introduction, pack_message, unpack_message
from asyncfed.flower.node_app import make_app
from asyncfed.flower.node_guard import read_guard
from asyncfed.flower.node_memory import load_memory, save_memory
from asyncfed.live.client_task import FirstModel, work_on
from asyncfed.live.wire import Arrays, Task, dtype_name
from asyncfed.problems.protocol import ClientShard, Problem, ShardedProblem, as_sharded_problem, held_back
from asyncfed.version import __version__

NodeSettings: TypeAlias = Mapping[str, Any]
LoadData: TypeAlias = Callable[[int, NodeSettings], tuple[Any, Any]]
"""(client, the node's settings) -> features (rows, columns) and targets (rows,) of that client alone."""

BuildProblem: TypeAlias = Callable[[Sequence[tuple[Any, Any]]], Problem]
"""[(features, targets) of each client] -> the problem with these rows; needed where the experiment's model is not the
one that is learnt, as for PyTorch modules: `lambda rows: af.problems.torch_problem(network, "cross_entropy", rows)`."""

T = TypeVar("T")

MAX_VECTORS = 4
"""A task may bring so many vectors as long as the model, itself among them."""


class NodeProblem(NamedTuple):
    """What is learnt, with the data of one client and of no other."""

    shard: ClientShard
    num_params: int
    dtype: np.dtype[Any]
    first_model: FirstModel


class NodeProgram:
    """What a node does with a message. Its data are loaded once, by the first message that comes to this process."""

    def __init__(
        self,
        experiment: Experiment,
        load_data: LoadData | None = None,
        build: BuildProblem | None = None,
        attack: Attack | None = None,
    ) -> None:
        if build is not None and load_data is None:
            raise ConfigError("client_app is given a problem, but no data for it. Give it data=..., too.")
        self._experiment = experiment
        self._load_data = load_data
        self._build = build
        self._attack = attack
        self._loaded: dict[str, NodeProblem] = {}

    def answer(self, kind: str, content: RecordDict, context: Context) -> RecordDict:
        """The content of the reply to a message."""
        return self.reply(kind, content, context.node_config, context.state)

    def reply(self, kind: str, content: RecordDict, node: NodeSettings, state: RecordDict) -> RecordDict:
        """The same; what the node remembers is read from `state` and put back there."""
        client, name = read_client(node), repr(sorted(node.items()))
        guard = read_guard(node)
        if name not in self._loaded:
            self._loaded[name] = load_problem(
                self._experiment, client, node, self._load_data, self._build, self._attack
            )
        own = self._loaded[name]
        if kind == MessageType.QUERY:
            dtype = dtype_name(own.dtype)
            return pack_introduction(Introduction(client, own.shard.num_examples, own.num_params, dtype, __version__))
        task, arrays = unpack_message(content, Task, MAX_VECTORS * own.num_params * own.dtype.itemsize)
        if guard is not None:
            guard.admit(task.work)
        return _train(own, task, arrays, state)


def _train(own: NodeProblem, task: Task, arrays: Arrays, state: RecordDict) -> RecordDict:
    memory = load_memory(state)
    held = held_back(own.shard, task.key)
    result, sent = work_on(
        *(own.shard, task, arrays, memory, time.perf_counter),
        pause=None if held == 1.0 else lambda worked: time.sleep((held - 1.0) * worked),
        first_model=own.first_model,
    )
    if task.memory is not UNSET:
        save_memory(state, memory)
    return pack_message(result, sent)


def make_client_app(
    experiment: Experiment,
    load_data: LoadData | None = None,
    build: BuildProblem | None = None,
    attack: Attack | None = None,
) -> ClientApp:
    """Flower's ClientApp for this experiment, which computes its answers in its own process."""
    return make_app(NodeProgram(experiment, load_data, build, attack).answer)


def find_named(what: T | str) -> T:
    """What a name such as `app_first.model:make_problem` stands for; anything but a text stands for itself."""
    if not isinstance(what, str):
        return what
    module, _, name = what.partition(":")
    try:
        found: T = getattr(import_module(module), name)
    except (ModuleNotFoundError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"{what!r} cannot be found ({error}). Write MODULE:NAME, such as 'app_first.data:load_data', of a module "
            "in the app's folder."
        ) from error
    return found


def read_client(node: NodeSettings) -> int:
    """Which client's data this node holds: its `partition-id`."""
    client = node.get("partition-id")
    if type(client) is not int or client < 0:
        raise ConfigError(
            f"This node's partition-id is {client!r}; it must be 0, 1, … "
            "Start the SuperNode with --node-config 'partition-id=0' and a number of its own on each."
        )
    return client


def load_problem(
    experiment: Experiment,
    client: int,
    node: NodeSettings,
    load_data: LoadData | None,
    build: BuildProblem | None = None,
    attack: Attack | None = None,
) -> NodeProblem:
    """Loaded by the app's own function, or this client's part of what the experiment generates; a liar's if told so."""
    if load_data is None:
        whole = experiment.problem()
        problem, number = as_sharded_problem(whole if attack is None else without_liars(whole)), client
    else:
        problem, number = build_problem(experiment, *load_data(client, node), build), 0

    def first_model() -> np.ndarray:
        return problem.init(experiment.seed, client=client, how=experiment.init)

    shard = problem.shard(number)
    if attack is not None:
        shard = lying_node(problem, number, attack, experiment.seed, experiment.init)
    return NodeProblem(shard, problem.num_params, problem.dtype, first_model)


def build_problem(experiment: Experiment, x: Any, y: Any, build: BuildProblem | None = None) -> ShardedProblem:
    """The experiment's model, or what `build` makes, on these rows, as those of a single client."""
    if build is not None:
        return as_sharded_problem(build([(x, y)]))
    model = experiment.model
    if getattr(model, "num_classes", 0) is None:
        raise ConfigError(
            "model.num_classes is left out, but a node sees no rows but its own and cannot count all classes. Set it."
        )
    rows = Clients.from_lists([x], [y], labels=model.labels, dtype=experiment.dtype)
    return as_sharded_problem(model.build(rows))
