"""The ClientApp: one message is one task. It holds the data of one client, and sends none of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from asyncfed.core.errors import ConfigError
from asyncfed.data import Clients
from asyncfed.experiment import Experiment
from asyncfed.flower.messages import Introduction, pack_introduction, pack_model, unpack_model
from asyncfed.kernels.losses import CLASSIFICATION_LOSSES
from asyncfed.live.wire import Result, Task, dtype_name
from asyncfed.problems.linear import Linear
from asyncfed.problems.protocol import ClientShard
from asyncfed.version import __version__

NodeSettings: TypeAlias = Mapping[str, Any]
LoadData: TypeAlias = Callable[[int, NodeSettings], tuple[Any, Any]]
"""(client, the node's settings) -> features (rows, columns) and targets (rows,) of that client alone."""


class Own(NamedTuple):
    """What is learnt, with the data of one client and of no other."""

    shard: ClientShard
    num_params: int
    dtype: np.dtype[Any]


def make_client_app(experiment: Experiment, load_data: LoadData | None = None) -> ClientApp:
    app = ClientApp()

    @app.query()
    def introduce(message: Message, context: Context) -> Message:
        client = client_of(context.node_config)
        own = own_part(experiment, client, context.node_config, load_data)
        who = Introduction(client, own.shard.num_examples, own.num_params, dtype_name(own.dtype), __version__)
        return Message(pack_introduction(who), reply_to=message)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        client = client_of(context.node_config)
        own = own_part(experiment, client, context.node_config, load_data)
        task, params = unpack_model(message.content, Task, own.num_params * own.dtype.itemsize)
        result, trained = carry_out(own.shard, task, params)
        return Message(pack_model(result, trained), reply_to=message)

    return app


def carry_out(shard: ClientShard, task: Task, params: np.ndarray) -> tuple[Result, np.ndarray]:
    """Train as the task says. Besides the model, only what the header of the answer names leaves this machine."""
    began = time.perf_counter()
    trained = shard.train(params, task.work, task.key)
    duration = time.perf_counter() - began
    return Result(task.session, task.ticket, duration, shard.num_examples, dtype_name(trained.dtype)), trained


def client_of(node: NodeSettings) -> int:
    """Which client's data this node holds: its `partition-id`."""
    client = node.get("partition-id")
    if type(client) is not int or client < 0:
        raise ConfigError(
            f"This node's partition-id is {client!r}; it must be 0, 1, … "
            "Start the SuperNode with --node-config 'partition-id=0' and a number of its own on each."
        )
    return client


def own_part(experiment: Experiment, client: int, node: NodeSettings, load_data: LoadData | None) -> Own:
    """Loaded by the app's own function, or this client's part of what the experiment generates."""
    if load_data is None:
        problem = experiment.problem()
        return Own(problem.shard(client), problem.num_params, problem.dtype)
    problem = alone(experiment, *load_data(client, node))
    return Own(problem.shard(0), problem.num_params, problem.dtype)


def alone(experiment: Experiment, x: Any, y: Any) -> Linear:
    """The experiment's model on these rows, as the only client."""
    labels = experiment.model.loss in CLASSIFICATION_LOSSES
    return experiment.model.build(Clients.from_lists([x], [y], labels=labels, dtype=experiment.dtype))
