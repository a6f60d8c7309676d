"""W1 to W3 in Flower's simulation: federated averaging, client apps run by Ray on both cores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from benchmarks.rivals.protocol import Clock, answer
from benchmarks.rivals.task import Task, load

PROCESSES = 2


def client_app(folder: Path, name: str) -> ClientApp:
    """It travels to Ray's processes with every message, so it reads the samples there."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        task = load(folder, name)
        x, y = task.tensors()[int(context.node_config["partition-id"])]
        module, loss = task.module(), task.loss()
        module.load_state_dict(message.content["arrays"].to_torch_state_dict())
        optimiser = torch.optim.SGD(module.parameters(), lr=task.rate)
        for _ in range(task.epochs):
            for rows in torch.randperm(len(x)).split(task.batch):
                optimiser.zero_grad()
                loss(module(x[rows]), y[rows]).backward()
                optimiser.step()
        content = {"arrays": ArrayRecord(module.state_dict()), "metrics": MetricRecord({"num-examples": len(x)})}
        return Message(content=RecordDict(content), reply_to=message)

    return app


class TimedAverage(FedAvg):
    clock: Clock

    def aggregate_train(self, server_round: int, replies: Any) -> Any:
        replies = list(replies)
        merged = super().aggregate_train(server_round, replies)
        self.clock.merged(len(replies))
        return merged


def run(task: Task, updates: int, clock: Clock) -> Any:
    module, server = task.module(), ServerApp()

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        strategy = TimedAverage(
            fraction_train=task.in_flight / task.num_clients,
            fraction_evaluate=0.0,
            min_available_nodes=task.num_clients,
        )
        strategy.clock = clock
        result = strategy.start(grid, ArrayRecord(module.state_dict()), num_rounds=task.rounds(updates))
        module.load_state_dict(result.arrays.to_torch_state_dict())

    run_simulation(
        server,
        client_app(Path(task.folder), task.name),
        num_supernodes=task.num_clients,
        backend_config={
            "init_args": {"num_cpus": PROCESSES, "include_dashboard": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
    return module


if __name__ == "__main__":
    os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    answer("flwr", {"w1": 40, "w2": 400, "w3": 200}, run, others=("torch", "ray"), in_one_process=False)
