"""Works as the numbers that the SGD kernels read."""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET
from asyncfed.core.types import Work
from asyncfed.kernels.tasks import Tasks
from asyncfed.problems.protocol import Array, Jobs

work_numbers = attrgetter("epochs", "batch_size", "learning_rate", "decay", "proximal")
_MOST_KEPT = 1024
"""Tasks in a call up to which the columns of one shared work are kept for the next call."""


def sgd_tasks(jobs: Jobs) -> Tasks:
    """The jobs' tasks as the kernels' arrays."""
    clients, works, keys = jobs.clients, jobs.works, jobs.keys
    count = len(clients)
    if len(works) != count:
        raise ConfigError(f"There are {count} clients but {len(works)} works; each task needs one of each.")
    if 0 < count <= _MOST_KEPT and works.count(works[0]) == count:
        work = _same_work(works[0], count)
    elif any(each.patience is not UNSET or each.steps is not UNSET for each in works):
        work = np.array([_all_numbers(each) for each in works], dtype=np.float64)
    else:
        work = np.array([_task_numbers(each) for each in works], dtype=np.float64).reshape(count, 5)
    return Tasks(np.array(clients, dtype=np.int64), np.array(keys, dtype=np.uint64), work)


def _task_numbers(work: Work) -> Any:
    if work.momentum:
        raise ConfigError(
            f"work.momentum is {work.momentum}, but linear problems are trained by plain SGD. Leave momentum out, or "
            "write the model as a PyTorch module: af.problems.torch_problem(...)."
        )
    return work_numbers(work)


@lru_cache(maxsize=64)
def _same_work(work: Work, count: int) -> Array:
    """`count` equal rows. A simulation needs the same few thousands of times a second."""
    plain = work.patience is UNSET and work.steps is UNSET
    numbers = _task_numbers(work) if plain else _all_numbers(work)
    rows = np.empty((count, len(numbers)))
    rows[:] = numbers
    return rows


def _all_numbers(work: Work) -> tuple[float, ...]:
    """The numbers of a task, with its patience and its steps, 0 for none."""
    ends = (0.0 if end is UNSET else float(end) for end in (work.patience, work.steps))
    return (*_task_numbers(work), *ends)
