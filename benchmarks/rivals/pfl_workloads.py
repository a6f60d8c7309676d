"""W1 to W3 in pfl-research: federated averaging on its simulated backend, on two processes started by torchrun."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel

from benchmarks.rivals.protocol import Clock, answer
from benchmarks.rivals.task import Task

PROCESSES = 2


class Trained(torch.nn.Module):
    """The module with the two functions pfl asks a model for."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.module, self._loss = task.module(), task.loss()

    def loss(self, x: Any, y: Any) -> Any:
        self.train()
        return self._loss(self.module(x), y)

    @torch.no_grad()
    def metrics(self, x: Any, y: Any) -> dict[str, Any]:
        self.eval()
        return {"loss": Weighted(self._loss(self.module(x), y).item() * len(y), len(y))}


class Tick(TrainingProcessCallback):
    """Tells the clock after every central iteration."""

    def __init__(self, clock: Clock, cohort: int) -> None:
        self._clock, self._cohort = clock, cohort

    def after_central_iteration(self, aggregate_metrics: Any, model: Any, *, central_iteration: int) -> Any:
        self._clock.merged(self._cohort)
        return False, Metrics()


def run(task: Task, updates: int, clock: Clock) -> Any:
    module = Trained(task)
    central = torch.optim.SGD(module.parameters(), lr=1.0)
    model = PyTorchModel(module, local_optimizer_create=torch.optim.SGD, central_optimizer=central)
    samples = task.tensors()

    def dataset_of(user: int) -> Dataset:
        order = torch.randperm(len(samples[user][0]))  # the library leaves shuffling to its users
        return Dataset(raw_data=[part[order] for part in samples[user]], user_id=user)

    sampler = get_user_sampler("minimize_reuse", list(range(task.num_clients)))
    training = FederatedDataset(dataset_of, sampler)
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=task.rounds(updates),
            evaluation_frequency=10**9,
            train_cohort_size=task.in_flight,
            val_cohort_size=0,
        ),
        SimulatedBackend(training, training),
        model,
        NNTrainHyperParams(local_num_epochs=task.epochs, local_learning_rate=task.rate, local_batch_size=task.batch),
        callbacks=[Tick(clock, task.in_flight)],
        send_metrics_to_platform=False,
    )
    return module.module


if __name__ == "__main__":
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={PROCESSES}"]
        os.execv(sys.executable, [*torchrun, "-m", __spec__.name, *sys.argv[1:]])
    if os.environ["RANK"] != "0":
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # one answer is enough
    answer("pfl", {"w1": 100, "w2": 10_000, "w3": 2_000}, run, in_one_process=False)
