"""A module whose parameters lie in one flat vector, and its local training: one client at a time.

The vector holds all parameters, then all buffers of floating point (the running statistics of batch norm). Buffers of
whole numbers are no part of it: each ticket begins with those that `model_fn` gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from math import inf

import numpy as np
import torch
from torch import Tensor, nn

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import purpose_key
from asyncfed.core.types import Work
from asyncfed.problems.protocol import Array
from asyncfed.problems.pytorch.known_gradients import KnownGradients, known_gradients
from asyncfed.problems.pytorch.torch_losses import Loss

_SEEDS = (1 << 63) - 1


class Path:
    """How far a training wanders from its start: steps, Σ (y_i − y_0) and Σ |y_i − y_0|², before each step."""

    def __init__(self, start: Tensor) -> None:
        self.steps = 0
        self.sums = torch.zeros(start.shape, dtype=torch.float64)
        self.squares = 0.0
        self._start = start.double().cpu()

    def add(self, point: Tensor) -> None:
        gap = point.double().cpu() - self._start
        self.steps += 1
        self.sums += gap
        self.squares += float(gap @ gap)


class Replica:
    """A copy of `template` to train and measure with; several are used side by side, one per thread."""

    def __init__(self, template: nn.Module, device: torch.device) -> None:
        self.module = deepcopy(template).to(device)
        parameters = list(self.module.parameters())
        buffers = list(self.module.buffers())
        self._kept = [(b, b.clone()) for b in buffers if not b.is_floating_point()]
        self._buffers = [b for b in buffers if b.is_floating_point()]
        self.num_trained = sum(p.numel() for p in parameters)
        size = self.num_trained + sum(b.numel() for b in self._buffers)
        self.flat = torch.empty(size, dtype=parameters[0].dtype, device=device)
        self.gradient = torch.zeros(self.num_trained, dtype=parameters[0].dtype, device=device)
        self._device = device
        self._frozen = [not p.requires_grad for p in parameters]
        self._sizes = [p.numel() for p in parameters]
        for tensor, place in _places([*parameters, *self._buffers], self.flat):
            place.copy_(tensor.detach())
            tensor.data = place
        self._gradients = [place for _, place in _places(parameters, self.gradient)]
        for parameter, place in zip(parameters, self._gradients, strict=True):
            parameter.grad = place
        self._known: KnownGradients | None = None

    def use_known_gradients(self, loss: Loss, x: Tensor, y: Tensor) -> None:
        """Do without autograd if the module's layers are known; `x` and `y` are rows to try it on."""
        self._known = known_gradients(self.module, loss, x, y)

    def load(self, params: Array) -> None:
        """Take these params, and the whole-number buffers of `model_fn`."""
        self.flat.copy_(tensor_of(params))
        for buffer, first in self._kept:
            buffer.copy_(first)

    def params(self) -> Array:
        params: Array = self.flat.cpu().numpy().copy()
        return params

    def step_gradient(self, x: Tensor, y: Tensor, loss: Loss) -> Tensor:
        """Add the gradient of the batch's mean loss to `gradient`; returns that loss. `x` may be used up."""
        if self._known is not None:
            with torch.no_grad():
                mean, gradients = self._known.mean_and_gradients(x, y)
                torch._foreach_add_(self._gradients, gradients)
            return mean
        mean = loss.mean(self.module(x), y)
        mean.backward()
        return mean.detach()

    def train(
        self,
        x: Tensor,
        y: Tensor,
        batches: Sequence[Sequence[Tensor]],
        work: Work,
        loss: Loss,
        path: Path | None,
        correction: Tensor | None = None,
    ) -> int:
        """Heavy-ball SGD from the loaded params: `batches[e]` are the rows of each batch of epoch e.

        With patience, it ends after so many epochs in a row whose mean loss was no lower than the lowest before. A
        `correction` (see `correction_of`) is added to the gradient of each step; it is for work without momentum.
        Answers with the number of steps made.
        """
        lowest, without, done = inf, 0, 0
        flat, gradient = self.flat[: self.num_trained], self.gradient
        momentum = work.momentum or 0.0
        start = flat.clone() if work.proximal else flat
        velocity = torch.zeros_like(flat) if momentum else gradient
        gradient.zero_()
        if self._known is None:  # the layers that are known are the same in training and evaluation
            self.module.train()
        for epoch, of_epoch in enumerate(batches):
            step = work.learning_rate / (epoch + 1.0) ** work.decay
            seen = 0.0
            for rows in of_epoch:
                if path is not None:
                    path.add(self.flat)
                mean = self.step_gradient(x.index_select(0, rows), y.index_select(0, rows), loss)
                if work.patience:
                    seen += float(mean) * len(rows)
                if work.proximal:
                    gradient.add_(flat - start, alpha=work.proximal)
                if correction is not None:
                    gradient.add_(correction)
                if momentum:
                    velocity.mul_(momentum).add_(gradient)
                flat.add_(velocity, alpha=-step)
                gradient.zero_()
            done += len(of_epoch)
            if work.patience:
                without = 0 if seen < lowest else without + 1
                lowest = min(lowest, seen)
                if without >= work.patience:
                    break
        return done

    def correction_of(self, vector: Array) -> Tensor:
        """What is added to the gradient: the vector without its part for buffers, and 0 for frozen parameters."""
        correction = tensor_of(vector)[: self.num_trained].to(self._device, copy=True)
        for frozen, part in zip(self._frozen, correction.split(self._sizes), strict=True):
            if frozen:
                part.zero_()
        return correction

    def check_bound(self) -> None:
        """Refuse modules that put new tensors where the vector's were: what they learn would be lost."""
        base = self.flat.data_ptr()
        end = base + self.flat.numel() * self.flat.element_size()
        tensors = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}
        for name, tensor in tensors.items():
            if tensor.is_floating_point() and not base <= tensor.data_ptr() < end and tensor.numel():
                raise ConfigError(
                    f"The module assigns a new tensor to `{name}` as it trains; change it in place instead "
                    f"(`self.{name}.copy_(...)`), so that it stays part of the model."
                )


def tensor_of(array: Array) -> Tensor:
    """The array as a tensor; copied if it must not be written to."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _places(tensors: Sequence[Tensor], flat: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    first = 0
    for tensor in tensors:
        yield tensor, flat[first : first + tensor.numel()].view(tensor.shape)
        first += tensor.numel()


@contextmanager
def use_one_thread() -> Iterator[None]:
    """Let torch compute on the calling thread alone: the sums of several would depend on how many they are."""
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def seed_torch(key: int, device: torch.device) -> Iterator[None]:
    """Let torch draw from this key; afterwards its generators are as they were.

    On the processor only its own generator is seeded: `torch.manual_seed` also notes, with a traceback each time, the
    seed of every kind of device that is not in use, which takes longer than a step of a small model.
    """
    seed = purpose_key(key, "torch") & _SEEDS
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        if device.type == "cpu":
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)
        yield


def draws_numbers(template: nn.Module, x: Tensor, device: torch.device) -> bool:
    """True if the module draws random numbers as it trains (dropout, say)."""
    with seed_torch(0, device), torch.no_grad():
        module = deepcopy(template).to(device).train()
        before = torch.get_rng_state() if device.type == "cpu" else torch.cuda.get_rng_state(device)
        module(x)
        after = torch.get_rng_state() if device.type == "cpu" else torch.cuda.get_rng_state(device)
    return not np.array_equal(before.numpy(), after.numpy())
