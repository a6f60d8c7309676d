"""Each attack's equation, computed by hand."""

import numpy as np
import pytest

from asyncfed.attacks import LiarView, Scaling, SignFlip
from asyncfed.core.types import Work
from asyncfed.errors import ConfigError

HONEST = {0: [1.0, 2.0], 1: [3.0, -2.0], 2: [2.0, 6.0], 3: [-4.0, 1.0]}
"""What each client would honestly send, wherever it starts from; clients 0 to 2 lie."""


def view(client=0, dtype=np.float64, **others):
    def honest_changes(start, clients, work):
        return np.array([HONEST[c] for c in clients], dtype) + np.asarray(start, dtype)

    fields = {
        "start": np.zeros(2, dtype),
        "change": np.array(HONEST[client], dtype),
        "client": client,
        "work": Work(),
        "key": 11,
        "secret": 7,
        "liars": (0, 1, 2),
        "num_clients": 4,
        "first": np.array([10.0, 20.0], dtype),
        "honest_changes": honest_changes,
    }
    return LiarView(**fields | others)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sign_flip_and_scaling_multiply_the_change(dtype):
    flipped, scaled = SignFlip(scale=10.0).lie(view(dtype=dtype)), Scaling(factor=3.0).lie(view(dtype=dtype))
    assert flipped.tolist() == [-10.0, -20.0]
    assert scaled.tolist() == [3.0, 6.0]
    assert flipped.dtype == scaled.dtype == dtype


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_factors_must_be_positive(value):
    with pytest.raises(ConfigError, match=r"attack\.scale is .*; it must be a positive number"):
        SignFlip(scale=value)
