"""Gradients without autograd have autograd's bits, for every kind of layer, alone and in whole trainings."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import asyncfed as af
from asyncfed.problems.pytorch import module_replica
from asyncfed.problems.pytorch.known_gradients import known_gradients
from asyncfed.problems.pytorch.torch_losses import Loss


@st.composite
def modules(draw):
    """A `Sequential` of known layers for images of some channels, and the shape of a row."""
    channels, height, width = draw(st.integers(1, 4)), draw(st.integers(6, 11)), draw(st.integers(6, 11))
    layers, shape = [], (channels, height, width)
    if draw(st.booleans()):
        layers.append(nn.Unflatten(1, shape))
        shape = (channels * height * width,)
    for _ in range(draw(st.integers(0, 2))):
        groups = draw(st.sampled_from([1, channels]))
        out = groups * draw(st.integers(1, 5))
        layers.append(
            nn.Conv2d(
                *(channels, out, draw(st.integers(1, 3))),
                stride=draw(st.integers(1, 2)),
                padding=draw(st.sampled_from([0, 1, (1, 2)])),
                dilation=draw(st.integers(1, 2)),
                groups=groups,
                bias=draw(st.booleans()),
            )
        )
        channels = out
        layers += draw(st.sampled_from([[], [nn.ReLU()], [nn.ReLU(inplace=True)], [nn.ReLU(), nn.ReLU()]]))
        if draw(st.booleans()):
            layers.append(nn.MaxPool2d(2, stride=draw(st.integers(1, 2)), padding=draw(st.integers(0, 1))))
            layers += [nn.ReLU()] * draw(st.integers(0, 1))
    layers += [nn.Flatten(), nn.Sequential(nn.Identity(), nn.LazyLinear(draw(st.integers(2, 40)))), nn.ReLU()]
    layers.append(nn.LazyLinear(draw(st.integers(2, 12)), bias=draw(st.booleans())))
    return nn.Sequential(*layers), shape


@settings(max_examples=60, deadline=None)
@given(
    made=modules(), rows=st.integers(1, 40), seed=st.integers(0, 2**32), flags=st.tuples(st.booleans(), st.booleans())
)
def test_they_have_the_bits_of_autograd(made, rows, seed, flags):
    (module, shape), (classes, double) = made, flags
    torch.manual_seed(seed)
    kind = torch.float64 if double else torch.float32
    module, x = module.to(kind), torch.randn(rows, *shape, dtype=kind)
    try:
        outputs = module(x[:1])
    except RuntimeError:
        return  # nothing is left of the image
    loss = Loss("cross_entropy" if classes else "mse")
    y = torch.randint(0, outputs.shape[1], (rows,)) if classes else torch.randn(rows, outputs.shape[1], dtype=kind)
    known = known_gradients(module, loss, x, y)
    if module[-3][1].in_features == 1:
        assert known is None
        return
    mean = loss.mean(module(x.clone()), y)
    expected = torch.autograd.grad(mean, list(module.parameters()))
    with torch.no_grad():
        found, gradients = known.mean_and_gradients(x.clone(), y)
    assert torch.equal(found, mean)
    assert len(gradients) == len(expected)
    for gradient, by_autograd in zip(gradients, expected, strict=True):
        assert gradient.shape == by_autograd.shape
        assert torch.equal(gradient, by_autograd)


def rows_of(shape, outputs, count=30):
    rng = np.random.default_rng(0)
    return torch.from_numpy(rng.normal(size=(count, *shape))), torch.from_numpy(rng.integers(0, outputs, count))


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def shared():
    layer = nn.Linear(6, 6)
    return nn.Sequential(layer, nn.ReLU(), layer)


def frozen():
    module = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3))
    module[0].weight.requires_grad = False
    return module


def hooked():
    module = nn.Sequential(nn.Linear(6, 3))
    module[0].register_forward_hook(lambda part, given, out: 2 * out)
    return module


@pytest.mark.parametrize(
    ("make", "shape", "loss"),
    [
        (lambda: nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3)), (6,), "cross_entropy"),
        (lambda: nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5), nn.Linear(4, 3)), (6,), "cross_entropy"),
        (lambda: nn.Sequential(Doubled(6, 3)), (6,), "cross_entropy"),
        (shared, (6,), "cross_entropy"),
        (frozen, (6,), "cross_entropy"),
        (hooked, (6,), "cross_entropy"),
        (lambda: nn.Sequential(nn.Linear(6, 3)), (6,), "nll"),
        (lambda: nn.Sequential(nn.Linear(6, 3)), (2, 6), "cross_entropy"),
        (lambda: nn.Sequential(nn.Conv2d(1, 2, 3, padding="same"), nn.Flatten()), (1, 4, 4), "cross_entropy"),
        (
            lambda: nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), nn.Flatten()),
            (1, 4, 4),
            "cross_entropy",
        ),
        (lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten()), (1, 4, 4), "cross_entropy"),
        (lambda: nn.Sequential(nn.Conv2d(1, 2, 3)), (1, 4, 4), "cross_entropy"),
    ],
)
def test_anything_else_is_left_to_autograd(make, shape, loss):
    assert known_gradients(make().double(), Loss(loss), *rows_of(shape, 3)) is None


@pytest.mark.parametrize(
    "how", [{}, {"momentum": 0.5}, {"proximal": 0.3}, {"patience": 1, "epochs": 9}, {"momentum": 0.5, "proximal": 0.1}]
)
def test_a_training_has_the_same_bytes_either_way(how, monkeypatch):
    def network():
        return nn.Sequential(
            *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 33), nn.ReLU(), nn.Linear(33, 4)),
        )

    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(n, 1, 8, 8)).astype("f4"), rng.integers(0, 4, n)) for n in (1, 30, 17)]
    work = af.Work(**{"epochs": 2, "batch_size": 7, "learning_rate": 0.3, **how})

    def everything():
        problem = af.problems.torch_problem(network, "cross_entropy", rows)
        start = problem.init(3)
        correction = None if "momentum" in how else np.full((1, start.size), 1e-3, np.float32)
        for client in range(3):
            jobs = af.problems.Jobs(start[None], [client], [work], [client + 5], corrections=correction)
            yield problem.local_train_many(jobs).tobytes()
            yield problem.gradient(start, client).tobytes()
        yield problem.fingerprint()

    known = list(everything())
    monkeypatch.setattr(module_replica, "known_gradients", lambda *given: None)
    assert list(everything()) == known
    assert len(set(known)) == 7
