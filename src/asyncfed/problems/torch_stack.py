"""Several clients' trainings of one multi-layer perceptron, step by step together.

A module made of `Linear` and `ReLU` layers, with the cross-entropy or the squared error, needs no autograd: its gradient
is written below. The params of k tickets lie in one array (k, p), and a step of all of them is one call per product.

The bytes of a ticket's result do not depend on who else is in the group, so that resuming, threads and the order of
events cannot change a run. That rests on four things, and tests hold them:

* every ticket's params begin at a multiple of 64 bytes, since a matrix product may round differently elsewhere;
* torch computes on one thread, since several share the rows of a product out;
* a step with fewer rows is filled up with rows of weight 0, since a product's rounding depends on its shape;
* elementwise steps are single additions and multiplications, which round alike in any place of a vector.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from asyncfed.core.types import Work
from asyncfed.kernels.orders import fill_schedule
from asyncfed.problems.protocol import Array
from asyncfed.problems.torch_losses import Loss
from asyncfed.problems.torch_replica import tensor_of

_ALIGNMENT = 64
_NUMBERS_AT_ONCE = 1 << 20
_MOST_AT_ONCE = 64
_MOST_OUTPUTS = 1024


class Layer(NamedTuple):
    """A `Linear` layer and whether a `ReLU` follows it; `weight` and `bias` are its first places in the params."""

    outputs: int
    inputs: int
    weight: int
    bias: int | None
    rectified: bool


class Ticket(NamedTuple):
    """One training: its place in the call, its rows `first` … `first + count − 1`, its work and its key."""

    place: int
    first: int
    count: int
    work: Work
    key: int

    @property
    def batch(self) -> int:
        return min(self.work.batch_size, self.count)

    @property
    def steps(self) -> int:
        return self.work.epochs * -(-self.count // self.batch)


def layers_of(module: nn.Module, loss: Loss, row_shape: tuple[int, ...]) -> list[Layer] | None:
    """The layers, if a module and its loss can be trained here; else None."""
    parts = list(_parts(module))
    if loss.name not in ("cross_entropy", "mse") or any(part is None for part in parts) or _is_touched(module):
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
    possible = layers and distinct and not layers[-1].rectified and layers[-1].outputs <= _MOST_OUTPUTS
    return layers if possible else None


def _parts(module: nn.Module) -> Iterator[nn.Module | None]:
    """Its layers in order; None for what is not known here."""
    if type(module) is nn.Sequential:
        for part in module:
            yield from _parts(part)
    elif type(module) is nn.Flatten:
        yield module if (module.start_dim, module.end_dim) == (1, -1) else None
    elif type(module) is not nn.Identity:
        yield module if type(module) in (nn.Linear, nn.ReLU) else None


def _is_touched(module: nn.Module) -> bool:
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


class Places(NamedTuple):
    """Where a layer's numbers lie in an array of params (k, p): views of shape (k, outputs, inputs) and (k, outputs)."""

    weight: Tensor
    bias: Tensor | None


def _places(params: Tensor, layers: Sequence[Layer]) -> list[Places]:
    found = []
    for layer in layers:
        weight = params[:, layer.weight : layer.weight + layer.outputs * layer.inputs]
        bias = None if layer.bias is None else params[:, layer.bias : layer.bias + layer.outputs]
        found.append(Places(weight.view(-1, layer.outputs, layer.inputs), bias))
    return found


class Stack:
    """Trains tickets on the rows `x` (n, d), `y` (n,) or (n, outputs)."""

    def __init__(self, layers: Sequence[Layer], loss: Loss, x: Tensor, y: Tensor) -> None:
        self._layers = list(layers)
        self._classes = loss.name == "cross_entropy"
        self._x = x.flatten(1)
        last = self._layers[-1]
        self._targets = one_hot(y, last.outputs).to(x.dtype) if self._classes else y.reshape(len(y), -1)
        self.num_params = last.weight + last.outputs * (last.inputs + (last.bias is not None))
        per_row = _ALIGNMENT // x.element_size()
        self._stride = -(-self.num_params // per_row) * per_row
        self._at_once = max(1, min(_MOST_AT_ONCE, _NUMBERS_AT_ONCE // self._stride))
        self._spaces: list[Tensor] = []

    def train(self, starts: Array, tickets: Sequence[Ticket], trained: Array, paths: Paths | None = None) -> None:
        """Write the params that each ticket arrives at from its row of `starts` into its row of `trained`.

        The two may be the same array.
        """
        groups = defaultdict(list)
        for ticket in sorted(tickets, key=lambda t: -t.steps):
            groups[ticket.batch, ticket.work.momentum or 0.0, ticket.work.proximal > 0].append(ticket)
        space = self._spaces.pop() if self._spaces else torch.zeros(self._at_once, self._stride).to(self._x)
        with torch.no_grad():
            for (batch, momentum, _), alike in groups.items():
                waiting = iter(alike)
                while group := list(islice(waiting, self._at_once)):
                    params = space[: len(group), : self.num_params]
                    places = [ticket.place for ticket in group]
                    for slot, place in enumerate(places):
                        params[slot].copy_(tensor_of(starts[place]))
                    self._train_group(params, group, batch, momentum, paths)
                    for place, row in zip(places, params.cpu().numpy(), strict=True):
                        trained[place] = row
        self._spaces.append(space)

    def _train_group(
        self, params: Tensor, group: list[Ticket], batch: int, momentum: float, paths: Paths | None
    ) -> None:
        """Train the rows of `params` in place."""
        plan = _plan(group, batch, momentum, self._x)
        origin = params.clone() if plan.pulled or paths is not None else params
        velocity = self._like(params) if momentum else params
        keep, sign = (momentum, 1.0) if momentum else (1.0, -1.0)
        active = 0
        for step, still_active in enumerate(plan.active):
            if still_active != active:
                active = still_active
                now, moving = params[:active], velocity[:active]
                own, into = _places(now, self._layers), _places(moving, self._layers)
            if paths is not None:
                _note(paths, [ticket.place for ticket in group[:active]], now, origin[:active])
            pull = (now - origin[:active]).mul_(plan.pulls[:active, step]) if plan.pulled else None
            self._step(own, into, plan.rows[:active, step], plan.weights[:active, step], keep, sign)
            if pull is not None:
                moving.add_(pull, alpha=sign)
            if momentum:
                now.sub_(moving.mul(plan.rates[:active, step]))

    def _like(self, params: Tensor) -> Tensor:
        """Zeros, each row of which begins at a multiple of 64 bytes."""
        return torch.zeros(len(params), self._stride).to(params)[:, : self.num_params]

    def _step(
        self, params: list[Places], into: list[Places], rows: Tensor, weights: Tensor, keep: float, sign: float
    ) -> None:
        """`into <- keep * into + sign * gradient`, the gradient being that of each ticket's weighted sum of losses."""
        chosen = rows.reshape(-1)
        below = self._x.index_select(0, chosen).view(*rows.shape, -1)
        inputs = []
        for layer, own in zip(self._layers, params, strict=True):
            inputs.append(below)
            below = _forward(own, below)
            if layer.rectified:
                below.relu_()
        slopes = torch.softmax(below, 2) if self._classes else below
        slopes.sub_(self._targets.index_select(0, chosen).view(slopes.shape))
        if not self._classes:
            slopes.mul_(2.0 / slopes.shape[2])
        slopes.mul_(weights.unsqueeze(2))
        for number in range(len(params) - 1, -1, -1):
            lower = torch.bmm(slopes, params[number].weight) if number else slopes
            _add_gradient(into[number], slopes, inputs[number], keep, sign)
            if number and self._layers[number - 1].rectified:
                lower = torch.ops.aten.threshold_backward(lower, inputs[number], 0)
            slopes = lower


def _forward(own: Places, below: Tensor) -> Tensor:
    if own.bias is None:
        return torch.bmm(below, own.weight.transpose(1, 2))
    return torch.baddbmm(own.bias.unsqueeze(1), below, own.weight.transpose(1, 2))


def _add_gradient(into: Places, slopes: Tensor, inputs: Tensor, keep: float, sign: float) -> None:
    into.weight.baddbmm_(slopes.transpose(1, 2), inputs, beta=keep, alpha=sign)
    if into.bias is not None:
        if keep != 1.0:
            into.bias.mul_(keep)
        into.bias.add_(slopes.sum(1), alpha=sign)


class Plan(NamedTuple):
    """What each step of a group reads: rows and weights (k, steps, batch); rates and pulls (k, steps, 1).

    `active[s]` tickets have a step s: they are the first ones.
    """

    rows: Tensor
    weights: Tensor
    rates: Tensor
    pulls: Tensor
    pulled: bool
    active: list[int]


def _plan(group: list[Ticket], batch: int, momentum: float, like: Tensor) -> Plan:
    steps = group[0].steps
    rows = np.zeros((len(group), steps, batch), np.int64)
    weights = np.zeros((len(group), steps, batch))
    rates = np.zeros((len(group), steps, 1))
    proximal = np.zeros((len(group), 1, 1))
    active = np.zeros(steps, np.int64)
    for place, ticket in enumerate(group):
        work, own = ticket.work, ticket.steps
        fill_schedule(ticket.key, ticket.count, ticket.first, work.epochs, batch, rows[place], weights[place])
        epochs = np.arange(own) // (own // work.epochs)
        rates[place, :own, 0] = work.learning_rate / (epochs + 1.0) ** work.decay
        proximal[place] = work.proximal
        active[:own] += 1
    if not momentum:
        weights *= rates
    pulls = proximal if momentum else proximal * rates
    moved = (torch.from_numpy(part).to(like.device, like.dtype) for part in (weights, rates, pulls + 0 * rates))
    return Plan(torch.from_numpy(rows).to(like.device), *moved, bool(proximal.any()), active.tolist())


def _note(paths: Paths, places: list[int], now: Tensor, origin: Tensor) -> None:
    gaps = (now.double() - origin.double()).cpu().numpy()
    paths.sums[places] += gaps
    paths.squares[places] += np.einsum("kp,kp->k", gaps, gaps)
