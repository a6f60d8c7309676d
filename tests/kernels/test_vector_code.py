"""What kernels and their twin share: a product and a sum rounded once, and the same numbers on any processor."""

import os
import platform
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.kernels.reference import fma
from asyncfed.kernels.vector_code import exponentials, lanes_of

NUMBERS = st.floats(-1e6, 1e6, width=32)


def nearest(exact, dtype):
    """The number of this precision next to an exact one; ties go to the even one, as `float` has it."""
    below = dtype(float(exact))
    near = [np.nextafter(below, dtype(-np.inf)), below, np.nextafter(below, dtype(np.inf))]
    least = min(abs(Fraction(float(number)) - exact) for number in near)
    best = [number for number in near if abs(Fraction(float(number)) - exact) == least]
    return best[0] if len(best) == 1 else next(n for n in best if not n.view(f"u{n.itemsize}") & 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(a=NUMBERS, b=NUMBERS, c=NUMBERS)
@settings(max_examples=60, deadline=None)
def test_a_product_and_a_sum_are_rounded_once(dtype, a, b, c):
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    found = fma(np.array([a], dtype), np.array([b], dtype), np.array([c], dtype))[0]
    assert found == nearest(exact, dtype)


def test_rounding_twice_would_be_seen():
    a = np.array([1.0 + 2.0**-30])
    assert fma(a, a, -a * a)[0] == 2.0**-60


def test_the_exponential_is_within_a_unit_in_the_last_place():
    values = np.linspace(-50.0, 50.0, 1001)
    found = np.empty_like(values)
    exponentials(values, found)
    np.testing.assert_allclose(found, np.exp(values), rtol=3e-16)


def test_a_vector_has_32_bytes():
    assert [lanes_of(dtype) for dtype in (np.float64, np.float32)] == [4, 8]


TRAININGS = """
import hashlib
import numpy as np
from asyncfed.kernels.losses import LOSS_CODES
from asyncfed.kernels.sgd import LocalSgd
from asyncfed.kernels.tasks import Tasks

rng, digest = np.random.default_rng(0), hashlib.sha256()
work = np.array([[3.0, 13, 0.01, 0.5, 0.1]])
for dtype in (np.float64, np.float32):
    for d in (1, 3, 10, 50, 501):
        x, y = rng.normal(size=(45, d)).astype(dtype), rng.choice([-1, 1], 45).astype(dtype)
        for loss in LOSS_CODES.values():
            model = LocalSgd(x, y, np.array([0, 45]), loss, 0.01, True, True, 0.5)
            tasks = Tasks(np.array([0]), np.array([5], np.uint64), work)
            digest.update(model.train(np.zeros((1, d + 1), dtype), tasks).tobytes())
print(digest.hexdigest())
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names processors of this family")
def test_processors_with_other_vectors_and_without_fma_train_to_the_same_bits(tmp_path):
    processors = [{}, {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}]
    found = [
        subprocess.run([sys.executable, "-c", TRAININGS], env=os.environ | those, capture_output=True, check=True)
        for those in processors
    ]
    assert found[0].stdout == found[1].stdout
