"""Gradients of modules whose layers are known, without autograd: torch's own operations, called one after another.

Autograd records every operation, walks the record back and adds what it finds to each parameter. For a `Sequential` of
the layers below, what it would call is known beforehand. The same operations on the same numbers in the same order give
the same bits, which tests compare; what is saved is the recording, and the calls of modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from asyncfed.problems.pytorch.compiled_training import is_touched
from asyncfed.problems.pytorch.torch_losses import Loss

_aten = torch.ops.aten
_convolution_backward = _aten.convolution_backward.default
_pooling_backward = _aten.max_pool2d_with_indices_backward.default
_threshold_backward = _aten.threshold_backward.grad_input
_nll_forward, _nll_backward = _aten.nll_loss_forward.default, _aten.nll_loss_backward.default
_log_softmax_backward = _aten._log_softmax_backward_data.default
_mse_backward = _aten.mse_loss_backward.default

_MEAN, _NOTHING_IGNORED = 1, -100
"""What torch's losses call their defaults."""


class _Layer(Protocol):
    """`forward` gives what comes out and what `backward` is to be given. `backward` appends the gradients of its
    parameters, in their order, and gives the slopes of what went in if they are `needed`."""

    @property
    def dimensions(self) -> int | None:
        """Of what goes in, rows included; None if any will do."""
        ...

    def forward(self, x: Tensor) -> tuple[Tensor, Any]: ...

    def backward(self, slopes: Tensor, kept: Any, needed: bool, gradients: list[Tensor]) -> Tensor: ...


class _Linear:
    dimensions: int | None = 2

    def __init__(self, layer: nn.Linear) -> None:
        self._weight = layer.weight.detach()
        self._bias = None if layer.bias is None else layer.bias.detach()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return functional.linear(x, self._weight, self._bias), x

    def backward(self, slopes: Tensor, kept: Tensor, needed: bool, gradients: list[Tensor]) -> Tensor:
        gradients.append(slopes.t().mm(kept))
        if self._bias is not None:
            gradients.append(slopes.sum(0))
        return slopes.mm(self._weight) if needed else slopes


class _Convolution:
    dimensions: int | None = 4

    def __init__(self, layer: nn.Conv2d) -> None:
        self._weight = layer.weight.detach()
        self._bias = None if layer.bias is None else layer.bias.detach()
        self._how = (layer.stride, layer.padding, layer.dilation)
        self._groups, self._sizes = layer.groups, [layer.out_channels]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.conv2d(x, self._weight, self._bias, *self._how, self._groups), x

    def backward(self, slopes: Tensor, kept: Tensor, needed: bool, gradients: list[Tensor]) -> Tensor:
        has_bias = self._bias is not None
        lower, *found = _convolution_backward(
            *(slopes, kept, self._weight, self._sizes, *self._how),
            *(False, (0, 0), self._groups, (needed, True, has_bias)),
        )
        gradients += found if has_bias else found[:1]
        return lower if needed else slopes


class _Rectifier:
    """In place: no other layer's `backward` asks for what went into it, nor for the slopes of what came out."""

    dimensions: int | None = None

    def __init__(self, layer: nn.ReLU) -> None:
        pass

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.relu_(x)
        return x, x

    def backward(self, slopes: Tensor, kept: Tensor, needed: bool, gradients: list[Tensor]) -> Tensor:
        lower: Tensor = _threshold_backward(slopes, kept, 0, grad_input=slopes)
        return lower


class _Pooling:
    dimensions: int | None = 4

    def __init__(self, layer: nn.MaxPool2d) -> None:
        sizes = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
        self._how = (*([size, size] if isinstance(size, int) else list(size) for size in sizes), layer.ceil_mode)

    def forward(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        out, places = torch._C._nn.max_pool2d_with_indices(x, *self._how)
        return out, (x, places)

    def backward(self, slopes: Tensor, kept: tuple[Tensor, Tensor], needed: bool, gradients: list[Tensor]) -> Tensor:
        lower: Tensor = _pooling_backward(slopes, kept[0], *self._how, kept[1])
        return lower


class _Reshaping:
    """`Flatten` and `Unflatten`: the same numbers in another shape."""

    dimensions: int | None = None

    def __init__(self, layer: nn.Flatten | nn.Unflatten) -> None:
        self._layer = layer

    def forward(self, x: Tensor) -> tuple[Tensor, torch.Size]:
        return self._layer.forward(x), x.shape

    def backward(self, slopes: Tensor, kept: torch.Size, needed: bool, gradients: list[Tensor]) -> Tensor:
        return slopes.reshape(kept)


_LAYERS: dict[type[Any], Callable[[Any], _Layer]] = {
    nn.Linear: _Linear,
    nn.Conv2d: _Convolution,
    nn.ReLU: _Rectifier,
    nn.MaxPool2d: _Pooling,
    nn.Flatten: _Reshaping,
    nn.Unflatten: _Reshaping,
}


class KnownGradients:
    """Of a module's parameters, in their order; made by `known_gradients`."""

    def __init__(self, layers: Sequence[_Layer], lowest: int, loss: str, kind: torch.dtype) -> None:
        self._layers, self._lowest = list(layers), lowest
        self._slopes = {"cross_entropy": self._class_slopes, "mse": self._square_slopes}[loss]
        self._one, self._kind = torch.ones((), dtype=kind), kind

    def mean_and_gradients(self, x: Tensor, y: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The batch's mean loss, and its gradient by each parameter. To be called without autograd, on a copy of x."""
        kept = []
        for layer in self._layers:
            x, saved = layer.forward(x)
            kept.append(saved)
        mean, slopes = self._slopes(x, y)
        gradients: list[list[Tensor]] = []
        for number in range(len(self._layers) - 1, self._lowest - 1, -1):
            found: list[Tensor] = []
            slopes = self._layers[number].backward(slopes, kept[number], number > self._lowest, found)
            gradients.append(found)
        return mean, [gradient for found in reversed(gradients) for gradient in found]

    def _class_slopes(self, out: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        logs = torch.log_softmax(out, 1)
        mean, total = _nll_forward(logs, y, None, _MEAN, _NOTHING_IGNORED)
        slopes = _nll_backward(self._one, logs, y, None, _MEAN, _NOTHING_IGNORED, total)
        return mean, _log_softmax_backward(slopes, logs, 1, self._kind)

    def _square_slopes(self, out: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return functional.mse_loss(out, y), _mse_backward(self._one, out, y, _MEAN)


def known_gradients(module: nn.Module, loss: Loss, x: Tensor, y: Tensor) -> KnownGradients | None:
    """The gradients of a module that has these parameters now, if all of its layers are known; `x`, `y` are rows."""
    parts = list(_parts(module))
    known = all(part is not None for part in parts) and loss.name in ("cross_entropy", "mse")
    if not known or is_touched(module) or x.device.type != "cpu" or not x.is_floating_point():
        return None
    parameters = [p for part in parts if part is not None for p in part.parameters()]
    if [id(p) for p in parameters] != [id(p) for p in module.parameters()]:
        return None  # a layer that comes twice
    layers = [_LAYERS[type(part)](part) for part in parts if part is not None]
    lowest = next(number for number, part in enumerate(parts) if part is not None and list(part.parameters()))
    with torch.no_grad():
        out = x[:1].clone()
        for layer in layers:
            if layer.dimensions not in (None, out.dim()) or (isinstance(layer, _Linear) and out.shape[1] == 1):
                return None  # autograd multiplies other matrices: of more dimensions, of one column
            out, _ = layer.forward(out)
    if out.dim() != 2 or y.dim() != (1 if loss.name == "cross_entropy" else 2):
        return None
    return KnownGradients(layers, lowest, loss.name, x.dtype)


def _parts(module: nn.Module) -> Iterator[nn.Module | None]:
    """Its layers in order; None for what is not known here."""
    if type(module) is nn.Sequential:
        for part in module:
            yield from _parts(part)
    elif isinstance(module, nn.Conv2d):
        plain = module.padding_mode == "zeros" and not isinstance(module.padding, str)
        yield module if type(module) is nn.Conv2d and plain else None
    elif isinstance(module, nn.MaxPool2d):
        yield module if type(module) is nn.MaxPool2d and not module.return_indices else None
    elif type(module) is not nn.Identity:
        yield module if type(module) in _LAYERS else None
