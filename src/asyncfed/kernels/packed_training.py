"""Many independent local trainings in one call of a compiled loop: what the kernels of all models share."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.kernels.rows import PackedRows
from asyncfed.kernels.tasks import Tasks
from asyncfed.kernels.threads import SMALL, run_split

Array = NDArray[Any]

_NO_PATHS = np.empty((1, 0))
_NO_CORRECTIONS = {np.dtype(kind): np.empty((1, 0), kind) for kind in (np.float32, np.float64)}
_NOT_COUNTED = np.empty(0, np.int64)


class PackedTraining(ABC):
    """All clients' rows and the model, checked once: a simulation calls `train` thousands of times a second.

    No result depends on `threads` in any bit. A kernel inherits it and names its compiled loops.

    Args:
        rows: the rows, one client after another.
        model: what the loops are told besides rows, params and tasks.
        outputs: margins of a row, 1 or more.
        fit_bias: whether each of them has a bias.
    """

    plain_loop: ClassVar[Callable[..., int] | None] = None
    """Without paths, corrections and counts, if there is a loop of its own for that."""
    full_loop: ClassVar[Callable[..., int]]

    def __init__(self, rows: PackedRows, model: tuple[Any, ...], outputs: int, fit_bias: bool) -> None:
        self._rows = rows
        self._data = rows.arrays
        self._model = model
        self._num_clients = len(rows.offsets) - 1
        self._per_row = rows.cells_per_row * 2 * outputs
        self._per_epoch = float(np.diff(rows.offsets).max(initial=0)) * self._per_row
        self._num_params = outputs * (rows.columns + bool(fit_bias))
        self._fit_bias = bool(fit_bias)

    def train(
        self,
        start: Array,
        tasks: Tasks,
        threads: int = 1,
        overwrite: bool = False,
        corrections: Array | None = None,
        steps_done: Array | None = None,
    ) -> Array:
        """The params (k, p) that task i, on client `clients[i]` from `start[i]`, arrives at.

        With `overwrite`, they may take the place of `start`. `corrections` (k, p) are added to each step's gradient;
        `steps_done` (k,) is filled with how many steps each task made.
        """
        params = self._checked(start, tasks, overwrite)
        self._run(params, _NO_PATHS, tasks, threads, corrections, steps_done)
        return params

    def path_moments(
        self,
        start: Array,
        tasks: Tasks,
        threads: int = 1,
        corrections: Array | None = None,
        steps_done: Array | None = None,
    ) -> tuple[Array, Array, Array]:
        """How far the training of `train` wanders: (I (k,), Σ (y_i − y_0) (k, p), Σ |y_i − y_0|² (k,)), all float64.

        The sums go over the I points y_0 … y_{I−1} from which a step is made; y_0 is the start.
        """
        params = self._checked(start, tasks)
        paths = np.zeros((len(params), self._num_params + 2))
        self._run(params, paths, tasks, threads, corrections, steps_done)
        return paths[:, -1].copy(), np.ascontiguousarray(paths[:, :-2]), paths[:, -2].copy()

    def _run(
        self,
        params: Array,
        paths: Array,
        tasks: Tasks,
        threads: int,
        corrections: Array | None,
        steps_done: Array | None,
    ) -> None:
        data = self._data
        clients, keys, work = tasks
        model = self._model
        loops = type(self)
        beside: tuple[Array, ...] = ()
        done = _NOT_COUNTED
        plainly = paths is _NO_PATHS and corrections is None and steps_done is None
        if plainly and loops.plain_loop is not None:
            train = loops.plain_loop
        else:
            shifts = (
                _NO_CORRECTIONS[params.dtype] if corrections is None else self._checked_corrections(corrections, tasks)
            )
            done = _NOT_COUNTED if steps_done is None else _room_for_counts(steps_done, tasks)
            train, beside = loops.full_loop, (paths, shifts, done)

        def run(first: int, last: int) -> None:
            bad = train(*data, first, last, params, *beside, clients, keys, work, *model)
            if bad >= 0:
                raise self._impossible(bad, tasks)

        if threads == 1 or self._at_most(tasks) < SMALL:
            run(0, len(params))
        else:
            run_split(run, self._rows_read(tasks) * self._per_row, threads)
        if steps_done is not None:
            steps_done[:] = done

    def _at_most(self, tasks: Tasks) -> float:
        """Multiply-adds if every client were the largest: quickly found, and mostly enough to know."""
        if tasks.work.shape[1] > 6:
            return float(self._rows_read(tasks).sum() * self._per_row)
        epochs = float(np.max(tasks.work[:, 0], initial=0.0))
        return float(len(tasks.clients) * self._per_epoch * epochs)

    def _rows_read(self, tasks: Tasks) -> Array:
        """The number of rows each task reads in all its steps, roughly; none for a client that is not there."""
        offsets = self._rows.offsets
        clients = np.clip(tasks.clients, 0, self._num_clients - 1)
        rows: Array = offsets[clients + 1] - offsets[clients]
        in_epochs = tasks.work[:, 0].astype(np.int64) * rows
        if tasks.work.shape[1] <= 6:
            return in_epochs
        steps = tasks.work[:, 6].astype(np.int64)
        return np.where(steps > 0, steps * np.minimum(tasks.work[:, 1].astype(np.int64), rows), in_epochs)

    def _checked_corrections(self, corrections: Array, tasks: Tasks) -> Array:
        needed = (len(tasks.clients), self._num_params)
        if corrections.shape != needed:
            raise DataError(f"corrections has shape {corrections.shape}; {needed[0]} tasks need {needed}.")
        return np.ascontiguousarray(corrections, dtype=self._rows.dtype)

    def _checked(self, start: Array, tasks: Tasks, overwrite: bool = False) -> Array:
        """A copy of `start` (or itself) to train in place, once nothing is found wrong with the shapes."""
        dtype = self._rows.dtype
        usable = overwrite and start.dtype == dtype and start.flags.c_contiguous and start.flags.writeable
        params = start if usable else np.array(start, dtype=dtype, order="C")
        count = len(tasks.clients)
        if params.shape != (count, self._num_params):
            raise self._wrong_start(params.shape, count)
        if tasks.keys.shape != (count,) or tasks.work.shape not in ((count, 5), (count, 6), (count, 7)):
            raise DataError(
                f"keys has shape {tasks.keys.shape} and work {tasks.work.shape}; {count} tasks need {(count,)} and "
                f"{(count, 5)}, {(count, 6)} or {(count, 7)}."
            )
        return params

    def _impossible(self, bad: int, tasks: Tasks) -> ConfigError:
        epochs, batch = tasks.work[bad, :2]
        return ConfigError(
            f"task {bad} asks client {tasks.clients[bad]} for {epochs:g} epochs in batches of {batch:g}; clients "
            f"are 0 … {self._num_clients - 1}, epochs at least 0 and a batch at least 1."
        )

    def _wrong_start(self, shape: tuple[int, ...], count: int) -> DataError:
        d = self._rows.columns
        bias = "and a bias" if self._fit_bias else "without a bias"
        return DataError(
            f"start has shape {shape}; {count} tasks of {d} features {bias} need {(count, self._num_params)}."
        )


def _room_for_counts(steps_done: Array, tasks: Tasks) -> Array:
    count = len(tasks.clients)
    if steps_done.shape != (count,):
        raise DataError(f"steps_done has shape {steps_done.shape}; {count} tasks need {(count,)}.")
    return np.zeros(count, np.int64)
