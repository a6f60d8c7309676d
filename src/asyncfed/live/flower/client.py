"""The ClientApp: one message is one task. It holds the data of one client, and sends none of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from asyncfed.core.errors import ConfigError
from asyncfed.data import Clients
from asyncfed.experiment import Experiment
from asyncfed.kernels.losses import CLASSIFICATION_LOSSES
from asyncfed.live.flower.content import Introduction, pack_introduction, pack_model, unpack_model
from asyncfed.live.wire import Result, Task, dtype_name
from asyncfed.problems.protocol import Problem
from asyncfed.version import __version__

NodeSettings: TypeAlias = Mapping[str, Any]
LoadData: TypeAlias = Callable[[int, NodeSettings], tuple[Any, Any]]
"""(client, the node's settings) -> features (rows, columns) and targets (rows,) of that client alone."""

ONLY = 0
"""The number of the one client in a problem that holds one client's data."""


def make_client_app(experiment: Experiment, load_data: LoadData | None = None) -> ClientApp:
    app = ClientApp()

    @app.query()
    def introduce(message: Message, context: Context) -> Message:
        client = client_of(context.node_config)
        problem = own_problem(experiment, client, context.node_config, load_data)
        who = Introduction(
            client, int(problem.num_examples[ONLY]), problem.num_params, dtype_name(problem.dtype), __version__
        )
        return Message(pack_introduction(who), reply_to=message)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        client = client_of(context.node_config)
        problem = own_problem(experiment, client, context.node_config, load_data)
        task, params = unpack_model(message.content, Task, problem.num_params * problem.dtype.itemsize)
        result, trained = carry_out(problem, task, params)
        return Message(pack_model(result, trained), reply_to=message)

    return app


def carry_out(problem: Problem, task: Task, params: np.ndarray) -> tuple[Result, np.ndarray]:
    """Train as the task says. Besides the model, only what the header of the answer names leaves this machine."""
    began = time.perf_counter()
    loss = problem.client_loss(params, ONLY)
    trained = problem.local_train(params, ONLY, task.work, task.key)
    result = Result(
        session=task.session,
        ticket=task.ticket,
        duration=time.perf_counter() - began,
        num_examples=int(problem.num_examples[ONLY]),
        dtype=dtype_name(trained.dtype),
        metrics={"loss_before": loss} if np.isfinite(loss) else None,
    )
    return result, trained


def client_of(node: NodeSettings) -> int:
    """Which client's data this node holds: its `partition-id`."""
    client = node.get("partition-id")
    if type(client) is not int or client < 0:
        raise ConfigError(
            f"This node's partition-id is {client!r}; it must be 0, 1, … "
            "Start the SuperNode with --node-config 'partition-id=0' and a number of its own on each."
        )
    return client


def own_problem(experiment: Experiment, client: int, node: NodeSettings, load_data: LoadData | None) -> Problem:
    """What is learnt, with the data of this client and of no other."""
    if load_data is not None:
        x, y = load_data(client, node)
        labels = experiment.model.loss in CLASSIFICATION_LOSSES
        return experiment.model.build(Clients.from_lists([x], [y], labels=labels, dtype=experiment.dtype))
    everybody = experiment.clients()
    x, y = everybody.client(client)
    alone = Clients(x.copy(), y.copy(), np.array([0, len(y)], np.int64), everybody.labels)
    return experiment.model.build(alone)
