"""W1 to W3 in APPFL: its virtual-time simulator (`vsim`) with FedAsync.

Its calls of the garbage collector after every step are switched off: with them W1 takes several times as long.
"""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from appfl.agent import SimClientAgent, SimServerAgent
from appfl.vsim import AsyncSimDriver, ClientProfile
from torch.utils.data import TensorDataset

from benchmarks.rivals.protocol import Clock, answer
from benchmarks.rivals.task import Task, load


def module_of(folder: str, name: str) -> Any:
    """APPFL makes models by the name of a function in a file: this one in this file."""
    return load(Path(folder), name).module()


def no_metric(truth: Any, predictions: Any) -> float:
    """APPFL wants a metric after every epoch."""
    return 0.0


class TimedDriver(AsyncSimDriver):
    clock: Clock

    def _handle_train_complete(self, cid: str, completion_time: float) -> None:
        super()._handle_train_complete(cid, completion_time)
        self.clock.merged(1)


def configurations(task: Task, updates: int, logs: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the clients share, and what is the server's."""
    clients = {
        "optimize_memory": False,
        "model_configs": {
            "model_path": __file__,
            "model_name": "module_of",
            "model_kwargs": {"folder": task.folder, "name": task.name},
        },
        "train_configs": {
            "trainer": "VanillaTrainer",
            "optimize_memory": False,
            "device": "cpu",
            "mode": "epoch",
            "num_local_epochs": task.epochs,
            "optim": "SGD",
            "optim_args": {"lr": task.rate},
            "train_batch_size": task.batch,
            "loss_fn": type(task.loss()).__name__,
            "metric_path": __file__,
            "metric_name": "no_metric",
            "logging_output_dirname": logs,
            "logging_output_filename": "",
        },
    }
    server = {
        "optimize_memory": False,
        "num_clients": task.num_clients,
        "num_global_epochs": updates,
        "scheduler": "AsyncScheduler",
        "scheduler_kwargs": {"num_clients": task.num_clients, "optimize_memory": False},
        "aggregator": "FedAsyncAggregator",
        "aggregator_kwargs": {
            "alpha": task.num_clients / task.in_flight,  # divided by the number of clients there
            "client_weights_mode": "equal",
            "optimize_memory": False,
        },
        "logging_output_dirname": logs,
        "logging_output_filename": "",
    }
    return clients, server


def run(task: Task, updates: int, clock: Clock) -> Any:
    quiet = logging.getLogger("quiet")
    quiet.setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as logs:
        shared, own = configurations(task, updates, logs)
        server = SimServerAgent({"client_configs": shared, "server_configs": own})
        clients = [
            SimClientAgent({**shared}, client_id=str(client), client_dataset=TensorDataset(x, y))
            for client, (x, y) in enumerate(task.tensors())
        ]
        for client in clients:
            client.logger.logger.setLevel(logging.ERROR)
        # Alike, all in flight would come back at once, and the clock see their merges without their training.
        speeds = np.random.default_rng(0).lognormal(sigma=0.5, size=len(clients))
        profiles = {c.get_id(): ClientProfile(compute_factor=speed) for c, speed in zip(clients, speeds, strict=True)}
        driver = TimedDriver(server, clients, profiles, task.in_flight, quiet, base_step_time=0.001)
        driver.clock = clock
        driver.run()
    module = task.module()
    module.load_state_dict(server.get_parameters(serial_run=True))
    return module


if __name__ == "__main__":
    answer("appfl", {"w1": 20, "w2": 2_000, "w3": 600}, run)
