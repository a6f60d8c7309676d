"""A small convolutional network as an experiment describes it: two convolutions, several classes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.core.record import Config
from asyncfed.problems.protocol import NamedData, PackedData
from asyncfed.problems.pytorch.build_torch_problem import torch_problem
from asyncfed.registry import register

if TYPE_CHECKING:
    from torch import nn

    from asyncfed.problems.pytorch.torch_problem import TorchProblem


@register("problem")
class Convolutional(Config, tag_field="kind", tag="convolutional"):
    """A network with two convolutions, for rows that are grey images of height by width pixels, line by line.

        scores = B pool(relu(K2 * pool(relu(K1 * image + a1)) + a2)) + b

    K1 and K2 are kernels of 3 by 3 pixels, `pool` takes the largest of 2 by 2; the loss is the cross-entropy, a mean
    over clients of their means. It is a PyTorch problem and needs the extra `torch`.

    Args:
        height: pixels from top to bottom, a multiple of 4.
        width: pixels from left to right, a multiple of 4.
        channels: channels of the first convolution, 1 or more; the second has twice as many.
        num_classes: how many classes there are, 2 or more.

    >>> Convolutional(height=7)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: model.height is 7; two poolings need a positive multiple of 4.
    """

    height: int = 8
    width: int = 8
    channels: int = 16
    num_classes: int = 10

    labels: ClassVar[bool] = False
    targets: ClassVar[str] = "classes"

    def __post_init__(self) -> None:
        for name, pixels in (("height", self.height), ("width", self.width)):
            if pixels < 1 or pixels % 4:
                raise ConfigError(f"model.{name} is {pixels}; two poolings need a positive multiple of 4.")
        if self.channels < 1:
            raise ConfigError(f"model.channels is {self.channels}; a convolution needs at least 1.")
        if self.num_classes < 2:
            raise ConfigError(f"model.num_classes is {self.num_classes}; there must be at least 2 classes.")

    def build(self, clients: NamedData, held_out: Mapping[Any, PackedData] | None = None) -> TorchProblem:
        """The problem of fitting this network to these clients' data.

        Args:
            clients: the rows to train on; their targets are the classes' numbers 0 … K−1.
            held_out: rows to measure on, by the name of the part ("validation", "test").
        """
        pixels = int(clients.x.shape[1])
        if pixels != self.height * self.width:
            raise DataError(
                f"A row has {pixels} numbers, but model.height x model.width is {self.height} x {self.width}. Set them "
                "to the images' size."
            )
        shape = (self.height, self.width, self.channels, self.num_classes)
        return torch_problem(partial(make_network, *shape), "cross_entropy", clients, held_out=held_out)


def make_network(height: int, width: int, channels: int, classes: int) -> nn.Module:
    """The module, with PyTorch's own first params."""
    from torch import nn

    return nn.Sequential(
        nn.Unflatten(1, (1, height, width)),
        *(nn.Conv2d(1, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(2 * channels * (height // 4) * (width // 4), classes)),
    )
