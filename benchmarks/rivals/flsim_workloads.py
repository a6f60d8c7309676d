"""W1 to W3 in FLSim: its asynchronous trainer, which merges update by update on a virtual clock.

One of its epochs is as many updates as there are clients, so W2 does at least a thousand. Batches are cut once; their
order is shuffled.
"""

from __future__ import annotations

from typing import Any

from benchmarks.rivals import hashable_configurations  # noqa: F401 - before FLSim

# isort: split
from flsim.clients.base_client import ClientConfig
from flsim.data.data_provider import FLDataProviderFromList
from flsim.interfaces.model import IFLModel
from flsim.optimizers.async_aggregators import FedAvgWithLRAsyncAggregatorConfig
from flsim.optimizers.local_optimizers import LocalOptimizerSGDConfig
from flsim.trainers.async_trainer import AsyncTrainer
from flsim.utils.async_trainer.training_event_generator import (
    AsyncTrainingEventGeneratorConfig,
    PoissonAsyncTrainingStartTimeDistrConfig,
)
from flsim.utils.simple_batch_metrics import FLBatchMetrics
from flsim.utils.timing.training_duration_distribution import (
    PerUserExponentialDurationDistributionConfig,
)

from benchmarks.rivals.protocol import Clock, answer
from benchmarks.rivals.task import Task


class Trained(IFLModel):
    """The module with the functions FLSim asks a model for."""

    def __init__(self, task: Task) -> None:
        self._module, self._loss = task.module(), task.loss()

    def fl_forward(self, batch: Any) -> FLBatchMetrics:
        x, y = batch
        out = self._module(x)
        return FLBatchMetrics(loss=self._loss(out, y), num_examples=len(y), predictions=out, targets=y, model_inputs=x)

    def fl_create_training_batch(self, **kwargs: Any) -> Any:
        return kwargs["batch"]

    def fl_get_module(self) -> Any:
        return self._module

    def fl_cuda(self) -> None:
        """There is no GPU here."""

    def get_eval_metrics(self, batch: Any) -> FLBatchMetrics:
        return self.fl_forward(batch)

    def get_num_examples(self, batch: Any) -> int:
        return len(batch[1])


class TimedTrainer(AsyncTrainer):
    clock: Clock

    def _global_update_done(self) -> None:
        super()._global_update_done()
        self.clock.merged(1)


def run(task: Task, updates: int, clock: Clock) -> Any:
    model = Trained(task)
    batches = [list(zip(x.split(task.batch), y.split(task.batch), strict=True)) for x, y in task.tensors()]
    # One client starts per unit of time on average and is away for `in_flight` units: so many are in flight.
    events = AsyncTrainingEventGeneratorConfig(
        training_start_time_distribution=PoissonAsyncTrainingStartTimeDistrConfig(training_rate=1.0),
        duration_distribution_generator=PerUserExponentialDurationDistributionConfig(
            training_duration_mean=float(task.in_flight)
        ),
    )
    trainer = TimedTrainer(
        model=model,
        epochs=float(max(1, round(updates / task.num_clients))),
        do_eval=False,
        report_train_metrics=False,
        training_event_generator=events,
        aggregator=FedAvgWithLRAsyncAggregatorConfig(lr=1.0 / task.in_flight),
        client=ClientConfig(
            epochs=task.epochs, optimizer=LocalOptimizerSGDConfig(lr=task.rate), shuffle_batch_order=True
        ),
    )
    trainer.clock = clock
    trained, _ = trainer.train(
        FLDataProviderFromList(batches, [], [], model), metrics_reporter=None, num_total_users=task.num_clients
    )
    return trained.fl_get_module()


if __name__ == "__main__":
    answer("flsim", {"w1": 40, "w2": 1_000, "w3": 300}, run)
