"""The ClientApp: one message is one task. It holds the data of one client, and sends none of them.

A process is started for every message, so this module imports only what a task needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from asyncfed.attacks import Attack, lying_node, without_liars
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET
from asyncfed.data import Clients
from asyncfed.experiment import Experiment
from asyncfed.flower.messages import Introduction, pack_introduction, pack_message, unpack_message
from asyncfed.flower.node_guard import NodeGuard, read_guard
from asyncfed.flower.node_memory import load_memory, save_memory
from asyncfed.live.client_task import FirstModel, work_on
from asyncfed.live.wire import Task, dtype_name
from asyncfed.problems.protocol import ClientShard, Problem, ShardedProblem, as_sharded_problem, held_back
from asyncfed.version import __version__

NodeSettings: TypeAlias = Mapping[str, Any]
LoadData: TypeAlias = Callable[[int, NodeSettings], tuple[Any, Any]]
"""(client, the node's settings) -> features (rows, columns) and targets (rows,) of that client alone."""

BuildProblem: TypeAlias = Callable[[Sequence[tuple[Any, Any]]], Problem]
"""[(features, targets) of each client] -> the problem with these rows; needed where the experiment's model is not the
one that is learnt, as for PyTorch modules: `lambda rows: af.problems.torch_problem(network, "cross_entropy", rows)`."""

MAX_VECTORS = 4
"""A task may bring so many vectors as long as the model, itself among them."""


class NodeError(Exception):
    """A task failed on this node. The server is sent the class of the cause, whose text stays in the node's log."""


class NodeProblem(NamedTuple):
    """What is learnt, with the data of one client and of no other."""

    shard: ClientShard
    num_params: int
    dtype: np.dtype[Any]
    first_model: FirstModel


def make_client_app(
    experiment: Experiment,
    load_data: LoadData | None = None,
    build: BuildProblem | None = None,
    attack: Attack | None = None,
) -> ClientApp:
    """Flower's ClientApp for this experiment: it introduces its node when queried, and trains the tasks it is sent."""
    if build is not None and load_data is None:
        raise ConfigError("client_app is given a problem, but no data for it. Give it data=..., too.")
    app, loaded = ClientApp(), dict[Hashable, NodeProblem]()

    def load(context: Context) -> tuple[int, NodeProblem, NodeGuard | None]:
        """This node's client, its problem, which is made once per process, and its guard."""
        node = context.node_config
        client, guard, name = read_client(node), read_guard(node), repr(sorted(node.items()))
        if name not in loaded:
            loaded[name] = load_problem(experiment, client, node, load_data, build, attack)
        return client, loaded[name], guard

    @app.query()
    def introduce(message: Message, context: Context) -> Message:
        with _only_class_names():
            client, own, _ = load(context)
            dtype = dtype_name(own.dtype)
            introduction = Introduction(client, own.shard.num_examples, own.num_params, dtype, __version__)
            return Message(pack_introduction(introduction), reply_to=message)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        with _only_class_names():
            _, own, guard = load(context)
            longest = MAX_VECTORS * own.num_params * own.dtype.itemsize
            task, arrays = unpack_message(message.content, Task, longest)
            if guard is not None:
                guard.admit(task.work)
            memory = load_memory(context.state)
            held = held_back(own.shard, task.key)
            result, sent = work_on(
                *(own.shard, task, arrays, memory, time.perf_counter),
                pause=None if held == 1.0 else lambda worked: time.sleep((held - 1.0) * worked),
                first_model=own.first_model,
            )
            if task.memory is not UNSET:
                save_memory(context.state, memory)
            return Message(pack_message(result, sent), reply_to=message)

    return app


@contextmanager
def _only_class_names() -> Iterator[None]:
    """Let no text of an exception leave this node: Flower sends that of whatever its app raises to the server.

    The text may hold paths and cells of data. The node's own log shows it, as the cause of the `NodeError`.
    """
    try:
        yield
    except Exception as error:
        raise NodeError(type(error).__name__) from error


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
