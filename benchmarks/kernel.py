"""The compiled SGD loop against plain C of the same loop, in one run.

Run with `python -m benchmarks.kernel`. W1 is 10 clients of about 200 samples, 10 features, batches of 32, 50 local
epochs of least squares. The two are timed in turn, so that a change of the machine's mood touches both alike.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.random import draw_key, purpose_key
from asyncfed.kernels.losses import LEAST_SQUARES
from asyncfed.kernels.sgd import train_many

Array = NDArray[Any]
NUM_CLIENTS, FEATURES, BATCH, EPOCHS, RATE, DECAY = 10, 10, 32, 50, 0.01, 0.5


class Workload:
    """W1, made from a seed: packed rows, a key per client."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.Generator(np.random.Philox(key=purpose_key(seed, "kernel benchmark")))
        sizes = rng.integers(180, 221, NUM_CLIENTS)
        self.offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.x = rng.normal(size=(self.offsets[-1], FEATURES))
        self.y = self.x @ rng.normal(size=FEATURES) + 0.2 * rng.normal(size=len(self.x))
        self.clients = np.arange(NUM_CLIENTS)
        self.keys = np.array([draw_key(seed, c, 0) for c in range(NUM_CLIENTS)], dtype=np.uint64)
        self.steps = int(EPOCHS * np.ceil(sizes / BATCH).sum())


def compile_c(folder: Path) -> ctypes.CDLL:
    """`kernel_c.c`, compiled with -O3 and loaded."""
    library = folder / "kernel_c.so"
    source = Path(__file__).with_name("kernel_c.c")
    subprocess.run(["cc", "-O3", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    pointer, size, real = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_double
    loaded.train.argtypes = [pointer, pointer, size, size, pointer, ctypes.c_uint64, size, size, real, real]
    loaded.train.restype = ctypes.c_int
    return loaded


def run_c(library: ctypes.CDLL, work: Workload) -> Array:
    """All clients' trainings, one after another, in C."""
    params = np.zeros((NUM_CLIENTS, FEATURES + 1))
    for client in range(NUM_CLIENTS):
        first, last = int(work.offsets[client]), int(work.offsets[client + 1])
        x, y = work.x[first:last], work.y[first:last]
        place, key = params[client].ctypes.data, int(work.keys[client])
        status = library.train(
            x.ctypes.data, y.ctypes.data, last - first, FEATURES, place, key, EPOCHS, BATCH, RATE, DECAY
        )
        if status:
            raise MemoryError("the C kernel could not allocate its scratch space")
    return params


def run_numba(work: Workload) -> Array:
    """The same trainings through the package's kernel, on one thread."""
    whole, real = np.full(NUM_CLIENTS, EPOCHS), np.full(NUM_CLIENTS, RATE)
    return train_many(
        work.x,
        work.y,
        work.offsets,
        work.clients,
        np.zeros((NUM_CLIENTS, FEATURES + 1)),
        work.keys,
        whole,
        np.full(NUM_CLIENTS, BATCH),
        real,
        np.full(NUM_CLIENTS, DECAY),
        np.zeros(NUM_CLIENTS),
        LEAST_SQUARES,
        0.0,
        True,
        True,
    )


def compare_with_c(repeats: int = 101) -> dict[str, float]:
    """Nanoseconds per SGD step of both (medians), the median of the paired ratios, and the largest difference.

    Raises AssertionError when the two do not train to the same params within 1e-10.
    """
    work = Workload()
    with tempfile.TemporaryDirectory() as folder:
        library = compile_c(Path(folder))
        difference = float(np.abs(run_numba(work) - run_c(library, work)).max())
        if not difference <= 1e-10:
            raise AssertionError(f"C and numba differ by {difference:.2g}; at most 1e-10 is rounding.")
        numba_times, c_times = [], []
        for _ in range(repeats):
            began = perf_counter()
            run_numba(work)
            between = perf_counter()
            run_c(library, work)
            numba_times.append(between - began)
            c_times.append(perf_counter() - between)
    ratios = [a / b for a, b in zip(numba_times, c_times, strict=True)]
    return {
        "numba_ns_per_step": median(numba_times) / work.steps * 1e9,
        "c_ns_per_step": median(c_times) / work.steps * 1e9,
        "ratio": median(ratios),
        "largest_difference": difference,
    }


def main() -> None:
    result = compare_with_c()
    print(f"W1: {NUM_CLIENTS} clients, d={FEATURES}, batch {BATCH}, {EPOCHS} epochs, one thread")
    print(f"{'plain C -O3':<14}{result['c_ns_per_step']:8.1f} ns per step")
    print(f"{'numba':<14}{result['numba_ns_per_step']:8.1f} ns per step")
    print(f"{'ratio':<14}{result['ratio']:8.3f} (median of paired runs)")
    print(f"{'params differ':<14}{result['largest_difference']:8.1e} at most")


if __name__ == "__main__":
    main()
