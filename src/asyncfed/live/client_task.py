"""What a client does with a task, whichever engine brought it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from asyncfed.live.wire import Result, Task, dtype_name
from asyncfed.problems.protocol import ClientShard


def train_task(
    shard: ClientShard,
    task: Task,
    params: np.ndarray,
    clock: Callable[[], float],
    pause: Callable[[float], None] | None = None,
) -> tuple[Result, np.ndarray]:
    """Train as the task says. Besides the model, only what the header of the result names leaves the client.

    `clock` gives seconds. `pause`, if given, is called with the seconds the training took and may sleep: a slowed-down
    client does, and its result says so.
    """
    began = clock()
    trained = shard.train(params, task.work, task.key)
    if pause is not None:
        pause(clock() - began)
    result = Result(task.session, task.ticket, clock() - began, shard.num_examples, dtype_name(trained.dtype))
    return result, trained
