"""Measuring a module on everybody's rows: in pieces of fixed bounds, so that nothing depends on who measures what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from asyncfed.core.errors import ConfigError
from asyncfed.kernels.threads import run_split
from asyncfed.problems.protocol import Array
from asyncfed.problems.torch_losses import Loss
from asyncfed.problems.torch_replica import Replica, one_thread, seeded

_CELLS_AT_ONCE = 1 << 19
_ROWS_AT_ONCE = 1024


class Measured(NamedTuple):
    """Sums over each client's rows, shape (C,), in float64."""

    loss: Array
    metrics: dict[str, Array]


class Measuring:
    """`take` gives a replica that nobody uses, `give_back` returns it."""

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
        self._x, self._y, self._offsets, self._loss = x, y, offsets, loss
        self._metrics = dict(metrics)
        self._take, self._give_back, self._device = take, give_back, device
        cells = max(1, x[:1].numel())
        self._piece = max(1, min(_ROWS_AT_ONCE, _CELLS_AT_ONCE // cells))

    def everybody(self, params: Array, threads: int) -> Measured:
        """All clients, all rows."""
        count = len(self._x)
        pieces = [(first, min(first + self._piece, count)) for first in range(0, count, self._piece)]
        values = np.zeros((1 + len(self._metrics), count))
        costs = np.array([last - first for first, last in pieces], np.int64) * len(params)

        def run(first: int, last: int) -> None:
            self._over(params, pieces[first:last], values)

        run_split(run, costs, threads)
        sums = np.add.reduceat(values, self._offsets[:-1], axis=1)
        if not self._loss.has_rows:
            bounds = zip(self._offsets[:-1].tolist(), self._offsets[1:].tolist(), strict=True)
            sums[0] = [self.loss_of(params, first, last) for first, last in bounds]
        return Measured(sums[0], dict(zip(self._metrics, sums[1:], strict=True)))

    def loss_of(self, params: Array, first: int, last: int) -> float:
        """The sum of the losses of rows `first` to `last`, from the same pieces as `everybody`."""
        if self._loss.has_rows:
            begin = first // self._piece * self._piece
            pieces = [(a, min(a + self._piece, len(self._x))) for a in range(begin, last, self._piece)]
            values = np.zeros((1 + len(self._metrics), len(self._x)))
            self._over(params, pieces, values)
            return float(values[0, first:last].sum())
        with self._loaded(params) as replica, torch.no_grad():
            total = 0.0
            for a in range(first, last, self._piece):
                b = min(a + self._piece, last)
                total += (b - a) * float(self._loss.mean(replica.module(self._x[a:b]), self._y[a:b]))
            return total

    def gradient(self, params: Array, first: int, last: int) -> Array:
        """The gradient of the mean loss of rows `first` to `last`; 0 for buffers."""
        whole = np.zeros(len(params))
        with self._loaded(params) as replica:
            for a in range(first, last, self._piece):
                b = min(a + self._piece, last)
                replica.gradient.zero_()
                replica.step_gradient(self._x[a:b], self._y[a:b], self._loss)
                whole[: replica.num_trained] += replica.gradient.double().cpu().numpy() * ((b - a) / (last - first))
        return whole

    def _over(self, params: Array, pieces: list[tuple[int, int]], values: Array) -> None:
        """Each row's loss (if it can be had) and metrics, into the columns of these pieces."""
        with self._loaded(params) as replica, torch.no_grad():
            for first, last in pieces:
                outputs, targets = replica.module(self._x[first:last]), self._y[first:last]
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
    """A replica with these params, in evaluation mode, on one thread of torch; drawing, if at all, from a fixed key."""

    def __init__(self, measuring: Measuring, params: Array) -> None:
        self._measuring, self._params = measuring, params
        self._contexts = (one_thread(), seeded(0, measuring._device))

    def __enter__(self) -> Replica:
        for context in self._contexts:
            context.__enter__()
        self._replica = self._measuring._take()
        self._replica.load(self._params)
        self._replica.module.eval()
        return self._replica

    def __exit__(self, *error: object) -> None:
        self._measuring._give_back(self._replica)
        for context in reversed(self._contexts):
            context.__exit__(None, None, None)
