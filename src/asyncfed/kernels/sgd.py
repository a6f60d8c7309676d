"""Local mini-batch SGD on a linear model: many independent trainings in one call.

The params are p = (w_1 … w_d), then the bias if there is one. In local epoch e = 0, 1, … the client's rows are
reshuffled and read in batches B of `batch` rows (the last may be shorter), each of which makes the step

    p ← p − lr / (e + 1)^decay · ( mean_{i in B} ∇f_i(p) + l2 · p + prox · (p − p_start) )

where the bias takes part in `l2 · p` only if `penalize_bias`. The losses f are those of `kernels/losses.py`.

The shuffle is that of `kernels/sgd_loops.py`. Every sum has one written order and no fast-math, so vector width and
thread count cannot change a result.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.kernels.rows import check_rows, frozen
from asyncfed.kernels.sgd_loops import first_impossible, train_range
from asyncfed.kernels.threads import run_split

Array = NDArray[Any]


class Tasks(NamedTuple):
    """k tasks, one column per number: `clients`, `epochs` and `batch` int64, `keys` uint64, the rates float64."""

    clients: Array
    keys: Array
    epochs: Array
    batch: Array
    lr: Array
    decay: Array
    prox: Array


class LocalSgd:
    """All clients' rows and the loss, checked once: a simulation calls `train` thousands of times a second.

    `x` (N, d), `y` (N,) and `offsets` (C + 1,) int64 hold the rows one client after another. No result depends on
    `threads` in any bit.
    """

    def __init__(
        self, x: Array, y: Array, offsets: Array, loss_code: int, l2: float, penalize_bias: bool, fit_bias: bool
    ) -> None:
        check_rows(x, y)
        self._data = (frozen(x), frozen(y), frozen(offsets))
        self._model = (loss_code, float(l2), bool(penalize_bias), bool(fit_bias))
        self._num_clients = len(offsets) - 1
        self._num_params = x.shape[1] + bool(fit_bias)

    def train(self, start: Array, tasks: Tasks, threads: int = 1) -> Array:
        """The params (k, p) that task i, on client `clients[i]` from `start[i]`, arrives at."""
        params = self._checked(start, tasks)
        self._run(params, np.empty((len(params), 0)), tasks, threads)
        return params

    def path_moments(self, start: Array, tasks: Tasks, threads: int = 1) -> tuple[Array, Array, Array]:
        """How far the training of `train` wanders: (I (k,), Σ (y_i − y_0) (k, p), Σ |y_i − y_0|² (k,)), all float64.

        The sums go over the I points y_0 … y_{I−1} from which a step is made; y_0 is the start.
        """
        params = self._checked(start, tasks)
        paths = np.zeros((len(params), self._num_params + 1))
        self._run(params, paths, tasks, threads)
        steps = tasks.epochs * -(-self._rows_of(tasks) // tasks.batch)
        return steps.astype(np.float64), np.ascontiguousarray(paths[:, :-1]), paths[:, -1].copy()

    def _run(self, params: Array, paths: Array, tasks: Tasks, threads: int) -> None:
        x, y, offsets = self._data
        loss, l2, penalize_bias, fit_bias = self._model

        def run(first: int, last: int) -> None:
            train_range(x, y, offsets, first, last, params, paths, *tasks, loss, l2, penalize_bias, fit_bias)

        if threads == 1:
            run(0, len(params))
            return
        multiply_adds = tasks.epochs * self._rows_of(tasks) * x.shape[1] * 2
        run_split(run, multiply_adds, threads)

    def _rows_of(self, tasks: Tasks) -> Array:
        """The number of rows each task has to read."""
        offsets = self._data[2]
        rows: Array = offsets[tasks.clients + 1] - offsets[tasks.clients]
        return rows

    def _checked(self, start: Array, tasks: Tasks) -> Array:
        """A copy of `start` to train in place, once nothing is found wrong with it and the tasks."""
        clients, keys, epochs, batch, lr, decay, prox = tasks
        params = np.array(start, dtype=self._data[0].dtype, order="C")
        one_each = (len(clients),)
        if params.shape != (*one_each, self._num_params):
            raise self._wrong_start(params.shape, len(clients))
        # Written out, because a loop over the columns takes as long as a small training.
        if not (one_each == keys.shape == epochs.shape == batch.shape == lr.shape == decay.shape == prox.shape):
            name, shape = next((n, c.shape) for n, c in zip(Tasks._fields, tasks, strict=True) if c.shape != one_each)
            raise DataError(f"{name} has shape {shape}; there are {len(clients)} tasks, one value each.")
        bad = first_impossible(clients, self._num_clients, epochs, batch)
        if bad >= 0:
            raise ConfigError(
                f"task {bad} asks client {clients[bad]} for {epochs[bad]} epochs in batches of {batch[bad]}; clients "
                f"are 0 … {self._num_clients - 1}, epochs at least 0 and a batch at least 1."
            )
        return params

    def _wrong_start(self, shape: tuple[int, ...], count: int) -> DataError:
        d = self._data[0].shape[1]
        bias = "and a bias" if self._num_params > d else "without a bias"
        return DataError(
            f"start has shape {shape}; {count} tasks of {d} features {bias} need {(count, self._num_params)}."
        )


def train_many(
    x: Array,
    y: Array,
    offsets: Array,
    clients: Array,
    start: Array,
    keys: Array,
    epochs: Array,
    batch: Array,
    lr: Array,
    decay: Array,
    prox: Array,
    loss_code: int,
    l2: float,
    penalize_bias: bool,
    fit_bias: bool,
    threads: int = 1,
) -> Array:
    """`LocalSgd.train` in one call, for data that are trained on once."""
    model = LocalSgd(x, y, offsets, loss_code, l2, penalize_bias, fit_bias)
    return model.train(start, Tasks(clients, keys, epochs, batch, lr, decay, prox), threads)
