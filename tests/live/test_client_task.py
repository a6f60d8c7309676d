"""What a client does with a task."""

import numpy as np

from asyncfed.core.types import Work
from asyncfed.live.client_task import work_on
from asyncfed.live.wire import Result, Task
from asyncfed.uplinks.client_memory import ClientMemory

TASK = Task("session", 7, 3, Work(epochs=2, batch_size=4, learning_rate=0.01), 99, "<f8")


def test_a_task_is_trained_as_the_simulator_trains_it(small):
    problem, params = small().problem(), np.linspace(-1, 1, 11)
    result, sent = work_on(problem.shard(2), TASK, {"model": params}, ClientMemory(), lambda: 0.0)
    assert sent["model"].tobytes() == problem.local_train(params, 2, TASK.work, TASK.key).tobytes()
    assert result == Result("session", 7, 0.0, 8, "<f8")


def test_the_duration_includes_the_pause(small):
    now = [10.0]

    class Shard:
        num_examples = 5

        def train(self, params, work, key):
            now[0] += 2.0
            return params

    def pause(worked):
        assert worked == 2.0
        now[0] += 3.0

    result, _ = work_on(Shard(), TASK, {"model": np.zeros(3)}, ClientMemory(), lambda: now[0], pause)
    assert result.duration == 5.0
