"""Modules that the compiled kernel trains in torch's place: `Linear` and `ReLU` layers, cross-entropy or squared error.

A step of a small network is shorter than the calls that it takes in PyTorch. `kernels/perceptron.py` makes all steps of
a ticket in one call, without the interpreter lock. A ticket's bytes do not depend on who else is trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from torch import Tensor, nn

from asyncfed.core.types import Work
from asyncfed.kernels.claimed_training import TrainingTable
from asyncfed.kernels.perceptron import Layer, Room, Tasks, train_perceptrons
from asyncfed.problems.protocol import Array
from asyncfed.problems.pytorch.torch_losses import Loss


class Ticket(NamedTuple):
    """One training: its place in the call, its rows from `first` on, its work and its key."""

    place: int
    first: int
    num_rows: int
    work: Work
    key: int

    @property
    def batch(self) -> int:
        return min(self.work.batch_size, self.num_rows)

    @property
    def per_epoch(self) -> int:
        """Steps of a whole epoch."""
        return -(-self.num_rows // self.batch)

    @property
    def steps(self) -> int:
        """Steps to be made; with patience, they may be fewer."""
        return self.work.count_steps(self.num_rows)

    @property
    def row_steps(self) -> int:
        """Rows that are read in all steps, roughly."""
        return self.steps * self.batch


def layers_of(module: nn.Module, loss: Loss, row_shape: tuple[int, ...]) -> list[Layer] | None:
    """The layers, if a module and its loss can be trained here; else None."""
    parts = list(_parts(module))
    if loss.name not in ("cross_entropy", "mse") or any(part is None for part in parts) or is_touched(module):
        return None
    if len(row_shape) != 1 and type(parts[0]) is not nn.Flatten:
        return None
    layers: list[Layer] = []
    place = 0
    for part in parts:
        if isinstance(part, nn.Linear):
            size = part.out_features * part.in_features
            bias = None if part.bias is None else place + size
            layers.append(Layer(part.out_features, part.in_features, place, bias, False))
            place += size + (0 if part.bias is None else part.out_features)
        elif isinstance(part, nn.ReLU):
            if not layers:
                return None
            layers[-1] = layers[-1]._replace(rectified=True)
    distinct = len({id(part) for part in parts if isinstance(part, nn.Linear)}) == len(layers)
    return layers if layers and distinct and not layers[-1].rectified else None


def _parts(module: nn.Module) -> Iterator[nn.Module | None]:
    """Its layers in order; None for what is not known here."""
    if type(module) is nn.Sequential:
        for part in module:
            yield from _parts(part)
    elif type(module) is nn.Flatten:
        yield module if (module.start_dim, module.end_dim) == (1, -1) else None
    elif type(module) is not nn.Identity:
        yield module if type(module) in (nn.Linear, nn.ReLU) else None


def is_touched(module: nn.Module) -> bool:
    """True if something beyond the layers themselves has a say: hooks, frozen or shared parameters."""
    hooked = any(
        part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks
        for part in module.modules()
    )
    every = list(module.named_parameters(remove_duplicate=False))
    return hooked or len(every) != len(list(module.parameters())) or not all(p.requires_grad for _, p in every)


class Paths(NamedTuple):
    """Σ (y_i − y_0) (k, p) and Σ |y_i − y_0|² (k,) over the points from which steps were made, in float64."""

    sums: Array
    squares: Array


class CompiledTraining:
    """Trains tickets on the rows `x` (n, …), `y` (n,) or (n, outputs), on the CPU."""

    def __init__(self, layers: Sequence[Layer], loss: Loss, x: Tensor, y: Tensor) -> None:
        self._layers = list(layers)
        self._x: Array = x.flatten(1).contiguous().numpy()
        targets = y if loss.name == "cross_entropy" else y.reshape(len(y), -1)
        self._targets: Array = targets.contiguous().numpy()
        self._free: list[Room] = []

    def tasks(self, tickets: Sequence[Ticket]) -> Tasks:
        """What `train` is to be given, made once for all threads."""
        counts = np.array([(t.place, t.first, t.num_rows, t.batch, t.steps) for t in tickets], np.int64)
        works = [ticket.work for ticket in tickets]
        numbers = np.array([(w.learning_rate, w.decay, w.proximal, w.momentum or 0.0) for w in works], np.float64)
        return Tasks(np.array([ticket.key for ticket in tickets], np.uint64), counts, numbers)

    def train(
        self,
        starts: Array,
        tasks: Tasks,
        part: tuple[int, int],
        trained: Array,
        paths: Paths | None = None,
        corrections: Array | None = None,
    ) -> None:
        """Write the params that each task arrives at from its row of `starts` into its row of `trained`.

        `part` are the first task to carry out and the one after the last. The two arrays may be the same if no paths
        are asked for. Rows of `corrections` are added to the gradient of each step.
        """
        batch = int(tasks.counts[slice(*part), 3].max())
        followed = None if paths is None else np.zeros((len(starts), starts.shape[1] + 2))
        with self.room(batch) as room:
            train_perceptrons(
                self._x, self._targets, room, starts, trained, followed, corrections, tasks, part[0], part[1]
            )
        if paths is not None and followed is not None:
            places = tasks.counts[slice(*part), 0]
            paths.sums[places], paths.squares[places] = followed[places, :-2], followed[places, -2]

    def table(self, num_params: int, size: int, batch: int) -> TrainingTable:
        """Room for so many trainings on these rows, with batches of at most so many of them."""
        return TrainingTable(self._x, self._targets, num_params, size, batch)

    @contextmanager
    def room(self, batch: int) -> Iterator[Room]:
        """One that nobody else uses meanwhile, large enough for such batches."""
        try:
            room = self._free.pop()
        except IndexError:
            room = Room(self._layers, batch, self._x.dtype)
        if room.batch < batch:
            room = Room(self._layers, batch, self._x.dtype)
        yield room
        self._free.append(room)
