"""A small neural network as an experiment describes it: one hidden layer, several classes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.problems.protocol import NamedData, PackedData
from asyncfed.problems.pytorch.build_torch_problem import torch_problem
from asyncfed.registry import register

if TYPE_CHECKING:
    from torch import nn

    from asyncfed.problems.pytorch.torch_problem import TorchProblem


@register("problem")
class Perceptron(Config, tag_field="kind", tag="perceptron"):
    """A network with one hidden layer, as it is written in TOML: a table `[model]` with `kind = "perceptron"`.

        scores = B relu(A z + a) + b,    loss = log Σ_k exp(score_k) − score_y,    a mean over clients of their means

    It is a PyTorch problem and needs the extra `torch`. Its first params are PyTorch's own, drawn by the seed.

    Args:
        hidden: units of the hidden layer, 1 or more.
        num_classes: how many classes there are, 2 or more; None for as many as the data hold.

    >>> Perceptron(hidden=0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: hidden is 0; a perceptron needs at least 1 hidden unit.
    """

    hidden: int = 16
    num_classes: int | None = None

    labels: ClassVar[bool] = False
    targets: ClassVar[str] = "classes"

    def __post_init__(self) -> None:
        if self.hidden < 1:
            raise ConfigError(f"hidden is {self.hidden}; a perceptron needs at least 1 hidden unit.")
        if self.num_classes is not None and self.num_classes < 2:
            raise ConfigError(f"num_classes is {self.num_classes}; a perceptron needs at least 2 classes.")

    def build(self, clients: NamedData, held_out: Mapping[Any, PackedData] | None = None) -> TorchProblem:
        """The problem of fitting this network to these clients' data.

        Args:
            clients: the rows to train on; their targets are the classes' numbers 0 … K−1.
            held_out: rows to measure on, by the name of the part ("validation", "test").
        """
        classes = self.num_classes
        if classes is None:
            classes = 1 + int(max(data.y.max(initial=0) for data in (clients, *(held_out or {}).values())))
        shape = (int(clients.x.shape[1]), self.hidden, classes)
        return torch_problem(partial(make_network, *shape), "cross_entropy", clients, held_out=held_out)


def make_network(inputs: int, hidden: int, classes: int) -> nn.Module:
    """The module, with PyTorch's own first params."""
    from torch import nn

    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, classes))
