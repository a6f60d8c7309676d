"""Several clients' trainings of one multi-layer perceptron, step by step together.

A module made of `Linear` and `ReLU` layers, with the cross-entropy or the squared error, needs no autograd: its
gradient is written below. The params of k tickets lie in one array, and a step of all of them is one call per product.

The bytes of a ticket's result do not depend on who else is in the group, so that resuming, threads and the order of
events cannot change a run. That rests on four things, and tests hold them:

* every operand of every ticket begins at a multiple of 64 bytes, since a matrix product may round differently
  elsewhere: widths are filled up with zeros to a multiple of 64 bytes, so no product is a narrow one either;
* torch computes on one thread, since several share the rows of a product out;
* a step with fewer rows is filled up with rows of weight 0, since a product's rounding depends on its shape;
* elementwise steps are single additions and multiplications, which round alike in any place of a vector.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from asyncfed.core.types import Work
from asyncfed.kernels.row_orders import fill_schedule
from asyncfed.problems.protocol import Array
from asyncfed.problems.pytorch.torch_losses import Loss
from asyncfed.problems.step_rates import step_rates

_ALIGNMENT = 64
_NUMBERS_AT_ONCE = 1 << 20
_MOST_AT_ONCE = 64
_MOST_OUTPUTS = 1024
_IMPOSSIBLE = -1e30


class Layer(NamedTuple):
    """A `Linear` layer and whether a `ReLU` follows it; `weight` and `bias` are its first places in the params."""

    outputs: int
    inputs: int
    weight: int
    bias: int | None
    rectified: bool


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


class Slots:
    """Room for the params of several tickets, one a row of `tensor`; all widths are filled up."""

    def __init__(self, count: int, layers: Sequence[Layer], classes: bool, dtype: torch.dtype) -> None:
        unit = _ALIGNMENT // dtype.itemsize
        self._layers = layers
        self._sizes = [(_fill_up(layer.outputs, unit), _fill_up(layer.inputs, unit)) for layer in layers]
        stride = sum(outputs * inputs + outputs for outputs, inputs in self._sizes)
        self.tensor = torch.zeros(count, stride, dtype=dtype)
        self._parts = self.parts(count)
        # Outputs that are not there must never be the answer.
        self._fillings = [0.0] * (len(layers) - 1) + [_IMPOSSIBLE if classes else 0.0]

    def parts(self, count: int) -> list[tuple[Tensor, Tensor]]:
        """Each layer's (weight, bias) of the first `count` slots: (k, outputs, inputs) and (k, outputs)."""
        first, found = 0, []
        for outputs, inputs in self._sizes:
            middle = first + outputs * inputs
            weight = self.tensor[:count, first:middle].view(count, outputs, inputs)
            found.append((weight, self.tensor[:count, middle : middle + outputs]))
            first = middle + outputs
        return found

    def load(self, rows: Sequence[Array], fillings: Sequence[float] | None = None) -> None:
        """Params into the first slots; what is filled up is made anew, for a training that diverged spoils it too.

        `fillings` are what biases are filled up with, layer by layer, if not with what params need.
        """
        used = len(rows)
        for layer, filling, (weight, bias) in zip(self._layers, fillings or self._fillings, self._arrays, strict=True):
            size = layer.outputs * layer.inputs
            weight[:used, layer.outputs :] = 0.0
            weight[:used, : layer.outputs, layer.inputs :] = 0.0
            bias[:used, layer.outputs :] = filling
            for slot, row in enumerate(rows):
                values = row[layer.weight : layer.weight + size].reshape(layer.outputs, layer.inputs)
                weight[slot, : layer.outputs, : layer.inputs] = values
                if layer.bias is not None:
                    bias[slot, : layer.outputs] = row[layer.bias : layer.bias + layer.outputs]

    def load_corrections(self, rows: Sequence[Array]) -> None:
        """Corrections into the first slots: what is filled up is not corrected."""
        self.tensor.zero_()
        self.load(rows, [0.0] * len(self._layers))

    def store(self, rows: Sequence[Array]) -> None:
        """Write the params of the first slots into these rows."""
        for layer, (weight, bias) in zip(self._layers, self._arrays, strict=True):
            size = layer.outputs * layer.inputs
            for slot, row in enumerate(rows):
                place = row[layer.weight : layer.weight + size].reshape(layer.outputs, layer.inputs)
                place[:] = weight[slot, : layer.outputs, : layer.inputs]
                if layer.bias is not None:
                    row[layer.bias : layer.bias + layer.outputs] = bias[slot, : layer.outputs]

    @cached_property
    def _arrays(self) -> list[tuple[Array, Array]]:
        return [(weight.numpy(), bias.numpy()) for weight, bias in self._parts]


class Stack:
    """Trains tickets on the rows `x` (n, …), `y` (n,) or (n, outputs), on the CPU."""

    def __init__(self, layers: Sequence[Layer], loss: Loss, x: Tensor, y: Tensor) -> None:
        self._layers = list(layers)
        self._classes = loss.name == "cross_entropy"
        outputs, unit = self._layers[-1].outputs, _ALIGNMENT // x.element_size()
        targets = one_hot(y, outputs).to(x.dtype) if self._classes else y.reshape(len(y), -1)
        self._x, self._targets = _widen(x.flatten(1), unit), _widen(targets, unit)
        self._slope = 2.0 / outputs
        self._at_once = 1
        stride = self._slots().tensor.shape[1]
        self._at_once = max(1, min(_MOST_AT_ONCE, _NUMBERS_AT_ONCE // stride))
        self._free: list[tuple[Slots, Slots]] = []

    def _slots(self) -> Slots:
        return Slots(self._at_once, self._layers, self._classes, self._x.dtype)

    def train(
        self,
        starts: Array,
        tickets: Sequence[Ticket],
        trained: Array,
        paths: Paths | None = None,
        corrections: Array | None = None,
    ) -> None:
        """Write the params that each ticket arrives at from its row of `starts` into its row of `trained`.

        The two may be the same array. Rows of `corrections` are added to the gradient of each step; no ticket may have
        momentum then.
        """
        groups = defaultdict(list)
        for ticket in sorted(tickets, key=lambda t: -t.steps):
            groups[ticket.batch, ticket.work.momentum or 0.0, ticket.work.proximal > 0].append(ticket)
        slots, moving = self._free.pop() if self._free else (self._slots(), self._slots())
        with torch.no_grad():
            for (batch, momentum, _), alike in groups.items():
                waiting = iter(alike)
                while group := list(islice(waiting, self._at_once)):
                    slots.load([starts[ticket.place] for ticket in group])
                    if corrections is not None:
                        moving.load_corrections([corrections[ticket.place] for ticket in group])
                    self._train_group(slots, moving, group, batch, momentum, paths, corrections is not None)
                    slots.store([trained[ticket.place] for ticket in group])
        self._free.append((slots, moving))

    def _train_group(
        self,
        slots: Slots,
        moving: Slots,
        group: list[Ticket],
        batch: int,
        momentum: float,
        paths: Paths | None,
        corrected: bool,
    ) -> None:
        """Train the params in the first slots; `moving` has their velocities, with momentum, or their corrections."""
        plan = _plan(group, batch, momentum, self._x, corrected)
        origin = slots.tensor[: len(group)].clone() if plan.pulled else slots.tensor
        if momentum:
            moving.tensor.zero_()
        into, keep, sign = (moving, momentum, 1.0) if momentum else (slots, 1.0, -1.0)
        before = _Before() if paths is not None else None
        active = 0
        for step, still_active in enumerate(plan.active):
            if still_active != active:
                active = still_active
                now, changed = slots.tensor[:active], into.tensor[:active]
                own, places = slots.parts(active), into.parts(active)
            if paths is not None and before is not None:
                before.note(paths, slots, [ticket.place for ticket in group[:active]])
            pull = (now - origin[:active]).mul_(plan.pulls[:active, step]) if plan.pulled else None
            self._step(own, places, plan.rows[:active, step], plan.weights[:active, step], keep, sign)
            if pull is not None:
                changed.add_(pull, alpha=sign)
            if corrected:
                now.sub_(moving.tensor[:active].mul(plan.rates[:active, step]))
            if momentum:
                now.sub_(changed.mul(plan.rates[:active, step]))

    def _step(
        self,
        params: list[tuple[Tensor, Tensor]],
        into: list[tuple[Tensor, Tensor]],
        rows: Tensor,
        weights: Tensor,
        keep: float,
        sign: float,
    ) -> None:
        """`into <- keep * into + sign * gradient`, the gradient being that of each ticket's weighted sum of losses."""
        chosen = rows.reshape(-1)
        below = self._x.index_select(0, chosen).view(*rows.shape, -1)
        inputs = []
        for layer, (weight, bias) in zip(self._layers, params, strict=True):
            inputs.append(below)
            below = torch.baddbmm(bias.unsqueeze(1), below, weight.transpose(1, 2))
            if layer.rectified:
                below.relu_()
        slopes = torch.softmax(below, 2) if self._classes else below
        slopes.sub_(self._targets.index_select(0, chosen).view(slopes.shape))
        if not self._classes:
            slopes.mul_(self._slope)
        slopes.mul_(weights.unsqueeze(2))
        for number in range(len(params) - 1, -1, -1):
            lower = torch.bmm(slopes, params[number][0]) if number else slopes
            self._add_gradient(number, into[number], slopes, inputs[number], keep, sign)
            if number and self._layers[number - 1].rectified:
                lower = torch.ops.aten.threshold_backward(lower, inputs[number], 0)
            slopes = lower

    def _add_gradient(
        self, number: int, into: tuple[Tensor, Tensor], slopes: Tensor, inputs: Tensor, keep: float, sign: float
    ) -> None:
        weight, bias = into
        weight.baddbmm_(slopes.transpose(1, 2), inputs, beta=keep, alpha=sign)
        if self._layers[number].bias is not None:
            if keep != 1.0:
                bias.mul_(keep)
            bias.add_(slopes.sum(1), alpha=sign)


class _Before:
    """The params of a group as they were at its start, to measure paths from."""

    def __init__(self) -> None:
        self._start: Array | None = None

    def note(self, paths: Paths, slots: Slots, places: list[int]) -> None:
        now = np.empty((len(places), paths.sums.shape[1]), slots.tensor.numpy().dtype)
        slots.store(list(now))
        if self._start is None:
            self._start = now
        gaps = now.astype(np.float64) - self._start[: len(places)]
        paths.sums[places] += gaps
        paths.squares[places] += np.einsum("kp,kp->k", gaps, gaps)


def _fill_up(width: int, unit: int) -> int:
    return -(-width // unit) * unit


def _widen(rows: Tensor, unit: int) -> Tensor:
    """The rows with zeros up to a width that is a multiple of `unit`."""
    width = _fill_up(rows.shape[1], unit)
    if width == rows.shape[1]:
        return rows
    wide = rows.new_zeros(len(rows), width)
    wide[:, : rows.shape[1]] = rows
    return wide


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


def _plan(group: list[Ticket], batch: int, momentum: float, like: Tensor, corrected: bool) -> Plan:
    steps = group[0].steps
    rows = np.zeros((len(group), steps, batch), np.int64)
    weights = np.zeros((len(group), steps, batch))
    rates = np.zeros((len(group), steps, 1))
    proximal = np.zeros((len(group), 1, 1))
    active = np.zeros(steps, np.int64)
    for place, ticket in enumerate(group):
        work, own = ticket.work, ticket.steps
        fill_schedule(ticket.key, ticket.num_rows, ticket.first, batch, rows[place, :own], weights[place, :own])
        rates[place, :own, 0] = _rates(work, ticket.num_rows)
        proximal[place] = work.proximal
        active[:own] += 1
    if not momentum:
        weights *= rates
    pulled = bool(proximal.any())
    pulls = np.broadcast_to(proximal, rates.shape) if momentum else proximal * rates
    return Plan(
        rows=torch.from_numpy(rows),
        weights=torch.from_numpy(weights).to(like.dtype),
        rates=torch.from_numpy(rates).to(like.dtype) if momentum or corrected else _NOT_READ,
        pulls=torch.from_numpy(pulls.copy()).to(like.dtype) if pulled else _NOT_READ,
        pulled=pulled,
        active=active.tolist(),
    )


_NOT_READ = torch.empty(0)
"""In place of what a group without momentum and corrections, or without a proximal term, has no use for."""


_rates = lru_cache(maxsize=256)(step_rates)
"""The same works come again and again."""
