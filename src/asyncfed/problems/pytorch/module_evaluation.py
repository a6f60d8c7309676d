"""Losses and metrics of a module on all clients' rows, in pieces of fixed bounds: no result depends on the threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise, repeat
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from asyncfed.core.errors import ConfigError
from asyncfed.kernels.threads import run_split
from asyncfed.problems.protocol import Array
from asyncfed.problems.pytorch.module_replica import Replica, seed_torch, use_one_thread
from asyncfed.problems.pytorch.torch_losses import Loss

_CELLS_AT_ONCE = 1 << 19
_ROWS_AT_ONCE = 1024


class RowSums(NamedTuple):
    """Sums over each client's rows, shape (C,), in float64."""

    loss: Array
    metrics: dict[str, Array]


class ModuleEvaluation:
    """A module's loss and metrics on packed rows. `take` gives a free replica, `give_back` takes it back."""

    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        offsets: Array,
        loss: Loss,
        metrics: Mapping[str, Callable[[Tensor, Tensor], Tensor]],
        take: Callable[[], Replica],
        give_back: Callable[[Replica], None],
        device: torch.device,
    ) -> None:
        self._x, self.y, self._offsets, self._loss = x, y, offsets, loss
        self._metrics = dict(metrics)
        self._take, self._give_back, self._device = take, give_back, device
        cells = max(1, x[:1].numel())
        self._piece = max(1, min(_ROWS_AT_ONCE, _CELLS_AT_ONCE // cells))

    def sum_by_one_model(self, params: Array, threads: int) -> RowSums:
        """All clients, all rows."""
        pieces = self._pieces(0, len(self._x))
        values = np.zeros((1 + len(self._metrics), len(self._x)))

        def run(first: int, last: int) -> None:
            self._over(params, pieces[first:last], values)

        self._side_by_side(run, pieces, len(params), threads)
        return self._sums(values, repeat(params))

    def sum_by_own_models(self, models: Array, threads: int) -> RowSums:
        """All clients, all rows, each client's by its own model of `models` (C, p)."""
        bounds = self._bounds
        values = np.zeros((1 + len(self._metrics), len(self._x)))

        def run(first: int, last: int) -> None:
            for own, (begin, end) in zip(models[first:last], bounds[first:last], strict=True):
                if begin < end:
                    self._over(own, self._pieces(begin, end), values)

        self._side_by_side(run, bounds, models.shape[1], threads)
        return self._sums(values, models)

    def loss_of(self, params: Array, first: int, last: int) -> float:
        """The sum of the losses of rows `first` to `last`, to the bits that a client alone with them measures."""
        if self._loss.has_rows:
            return float(self.row_losses_of(params, first, last).sum())
        return self._loss_by_batches(params, first, last, copied=True)

    def row_losses_of(self, params: Array, first: int, last: int) -> Array:
        """The losses of rows `first` to `last`, to the bits that a client alone with them measures.

        Rows are copied, because results depend, in the last bit, on where in memory a batch begins.
        """
        with seed_torch(0, self._device), self._loaded(params) as replica, torch.no_grad():
            losses = []
            for a, b in self._pieces(first, last):
                x, y = self._x[a:b].clone(), self.y[a:b].clone()
                losses.append(self._loss.rows(replica.module(x), y).cpu().numpy())
            return np.concatenate(losses).astype(np.float64)

    def _loss_by_batches(self, params: Array, first: int, last: int, copied: bool = False) -> float:
        """The same of a loss that is only known as a mean over rows."""
        with seed_torch(0, self._device), self._loaded(params) as replica, torch.no_grad():
            total = 0.0
            for a, b in self._pieces(first, last):
                x, y = self._x[a:b], self.y[a:b]
                x, y = (x.clone(), y.clone()) if copied else (x, y)
                total += (b - a) * float(self._loss.mean(replica.module(x), y))
            return total

    def gradient(self, params: Array, first: int, last: int) -> Array:
        """The gradient of the mean loss of rows `first` to `last`; 0 for buffers."""
        whole = np.zeros(len(params))
        with seed_torch(0, self._device), self._loaded(params) as replica:
            for a, b in self._pieces(first, last):
                replica.gradient.zero_()
                replica.step_gradient(self._x[a:b].clone(), self.y[a:b], self._loss)
                whole[: replica.num_trained] += replica.gradient.double().cpu().numpy() * ((b - a) / (last - first))
        return whole

    @property
    def _bounds(self) -> list[tuple[int, int]]:
        """Each client's first row, and the one after its last."""
        return list(pairwise(self._offsets.tolist()))

    def _pieces(self, first: int, last: int) -> list[tuple[int, int]]:
        return [(a, min(a + self._piece, last)) for a in range(first, last, self._piece)]

    def _side_by_side(
        self, run: Callable[[int, int], None], bounds: list[tuple[int, int]], num_params: int, threads: int
    ) -> None:
        """Torch has one generator for all threads, so the calling thread seeds it, and puts it back."""
        costs = np.array([last - first for first, last in bounds], np.int64) * num_params
        with seed_torch(0, self._device):
            run_split(run, costs, threads)

    def _sums(self, values: Array, models: Iterable[Array]) -> RowSums:
        """Each client's sums of its rows' values; 0 without rows."""
        filled = np.diff(self._offsets) > 0
        sums = np.zeros((len(values), len(filled)))
        sums[:, filled] = np.add.reduceat(values, self._offsets[:-1][filled], axis=1)
        if not self._loss.has_rows:
            sums[0] = [self._loss_by_batches(model, *rows) for model, rows in zip(models, self._bounds, strict=False)]
        return RowSums(sums[0], dict(zip(self._metrics, sums[1:], strict=True)))

    def _over(self, params: Array, pieces: list[tuple[int, int]], values: Array) -> None:
        """Each row's loss (if it can be had) and metrics, into the columns of these pieces."""
        with self._loaded(params) as replica, torch.no_grad():
            for first, last in pieces:
                outputs, targets = replica.module(self._x[first:last]), self.y[first:last]
                if self._loss.has_rows:
                    values[0, first:last] = self._loss.rows(outputs, targets).cpu().numpy()
                for number, (name, metric) in enumerate(self._metrics.items(), start=1):
                    found = metric(outputs, targets)
                    if found.shape != (last - first,):
                        raise ConfigError(
                            f'The metric "{name}" gives shape {tuple(found.shape)} for {last - first} rows; it must '
                            "give one number per row, of which the mean is taken."
                        )
                    values[number, first:last] = found.cpu().numpy()

    def _loaded(self, params: Array) -> _Loaded:
        return _Loaded(self, params)


class _Loaded:
    """A replica with these params, in evaluation mode, on one thread of torch."""

    def __init__(self, measuring: ModuleEvaluation, params: Array) -> None:
        self._measuring, self._params = measuring, params
        self._one_thread = use_one_thread()

    def __enter__(self) -> Replica:
        self._one_thread.__enter__()
        self._replica = self._measuring._take()
        self._replica.load(self._params)
        self._replica.module.eval()
        return self._replica

    def __exit__(self, *error: object) -> None:
        self._measuring._give_back(self._replica)
        self._one_thread.__exit__(None, None, None)
