"""The compiled SGD loop against the same loop in C, vectorised by hand, in one run.

Run with `python -m benchmarks.kernel`. The work is W1's, 10 clients of about 200 samples in batches of 32, with 10, 50
and 500 features, for least squares and hinge, in double and single precision. The two are timed in turn by processor
time, and the least time of each counts. C is compiled with -O3 -march=native and gets its rows padded beforehand; the
kernel gets them as they are.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.random import draw_key, purpose_key
from asyncfed.kernels.losses import HINGE, LEAST_SQUARES
from asyncfed.kernels.sgd import LocalSgd
from asyncfed.kernels.tasks import Tasks
from benchmarks.measure import best_in_turn
from benchmarks.outcome import Line, Outcome

Array = NDArray[Any]
NUM_CLIENTS, BATCH, RATE, DECAY = 10, 32, 0.01, 0.5
EPOCHS = {10: 50, 50: 20, 500: 3}
LOSSES = {"least squares": LEAST_SQUARES, "hinge": HINGE}
GOAL = 1.3
ROUNDING = {"float64": 1e-10, "float32": 1e-3}


class Case(NamedTuple):
    """What is trained: the loss, the precision, and the number of features."""

    loss: str
    dtype: str
    features: int


CASES = [Case(loss, dtype, features) for features in EPOCHS for loss in LOSSES for dtype in ("float64", "float32")]


class Workload:
    """The trainings of a case, made from a seed: packed rows, a key per client."""

    def __init__(self, case: Case, seed: int = 0) -> None:
        rng = np.random.Generator(np.random.Philox(key=purpose_key(seed, "kernel benchmark")))
        sizes, d = rng.integers(180, 221, NUM_CLIENTS), case.features
        self.loss, self.epochs, self.rate = LOSSES[case.loss], EPOCHS[d], RATE * min(1.0, 50 / d)
        self.offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        x = rng.normal(size=(self.offsets[-1], d))
        y = x @ rng.normal(size=d) + 0.2 * rng.normal(size=len(x))
        self.x = x.astype(case.dtype)
        self.y = (np.where(y > 0, 1.0, -1.0) if self.loss == HINGE else y).astype(case.dtype)
        self.keys = np.array([draw_key(seed, c, 0) for c in range(NUM_CLIENTS)], dtype=np.uint64)
        self.steps = int(self.epochs * np.ceil(sizes / BATCH).sum())
        self.model = LocalSgd(self.x, self.y, self.offsets, self.loss, 0.0, True, True)
        work = np.tile([float(self.epochs), BATCH, self.rate, DECAY, 0.0], (NUM_CLIENTS, 1))
        self.tasks = Tasks(np.arange(NUM_CLIENTS), self.keys, work)

    def run_kernel(self) -> Array:
        """All clients' trainings through the package's kernel, on one thread."""
        return self.model.train(np.zeros((NUM_CLIENTS, self.x.shape[1] + 1), self.x.dtype), self.tasks)


class InC:
    """The trainings of a workload in C, in one call.

    Args:
        library: `kernel_c.c`, compiled.
        work: what is to be trained.
    """

    def __init__(self, library: ctypes.CDLL, work: Workload) -> None:
        self._work, (rows, d), dtype = work, work.x.shape, work.x.dtype
        self._width = 32 // dtype.itemsize
        self._blocks = -(-(d + 1) // self._width)
        self._x = _aligned((rows, self._blocks * self._width), dtype)
        self._x[:, :d], self._x[:, d] = work.x, 1.0
        self._params = _aligned((NUM_CLIENTS, self._blocks * self._width), dtype)
        self._gradient = _aligned((1, self._blocks * self._width), dtype)
        self._order = np.empty(rows, np.uint32)
        self._train = library.train_double if dtype == np.float64 else library.train_float
        pointer, size, real = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_double
        self._train.argtypes = [
            *(pointer, pointer, pointer, size, size, pointer, pointer, pointer, pointer),
            *(size, size, real, real, ctypes.c_int),
        ]
        self._train.restype = None

    def run(self) -> Array:
        work = self._work
        self._params[:] = 0.0
        places = (self._params, self._gradient, self._order, work.keys)
        self._train(
            *(array.ctypes.data for array in (self._x, work.y, work.offsets)),
            *(NUM_CLIENTS, self._blocks),
            *(array.ctypes.data for array in places),
            *(work.epochs, BATCH, work.rate, DECAY, work.loss),
        )
        return self._params[:, : work.x.shape[1] + 1]


def _aligned(shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
    """Zeros that begin at a multiple of 64 bytes."""
    size = shape[0] * shape[1] * dtype.itemsize
    room = np.zeros(size + 64, np.uint8)
    begin = -room.ctypes.data % 64
    return room[begin : begin + size].view(dtype).reshape(shape)


def compile_c(folder: Path) -> ctypes.CDLL:
    """`kernel_c.c`, compiled for this processor and loaded."""
    library = folder / "kernel_c.so"
    source = Path(__file__).with_name("kernel_c.c")
    flags = ["-O3", "-march=native", "-Wno-psabi", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", str(library), str(source), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def compare(case: Case, library: ctypes.CDLL, repeats: int) -> dict[str, float]:
    """Nanoseconds of processor time per SGD step of both, their ratio, and the largest difference of the params.

    Raises AssertionError when the two do not train to the same params within rounding.
    """
    work = Workload(case)
    in_c = InC(library, work)
    difference = float(np.abs(work.run_kernel() - in_c.run()).max())
    if not difference <= ROUNDING[case.dtype]:
        raise AssertionError(f"{case}: C and kernel differ by {difference:.2g}; that is more than rounding.")
    best = best_in_turn({"kernel": work.run_kernel, "C": in_c.run}, repeats)
    kernel, c = (best[name].cpu / work.steps * 1e9 for name in ("kernel", "C"))
    return {"kernel_ns_per_step": kernel, "c_ns_per_step": c, "ratio": kernel / c, "largest_difference": difference}


def measure(repeats: int = 101) -> Outcome:
    """Every case, in turn with C."""
    lines, numbers = [], {}
    with tempfile.TemporaryDirectory() as folder:
        library = compile_c(Path(folder))
        for case in CASES:
            found = compare(case, library, repeats)
            numbers[" ".join(map(str, case))] = found
            what = f"SGD kernel / vectorised C, {case.loss}, {case.dtype}, d = {case.features}"
            measured = f"{found['kernel_ns_per_step']:.0f} ns/step, C {found['c_ns_per_step']:.0f}"
            lines.append(Line(what, measured, found["ratio"], f"<= {GOAL}x", found["ratio"] <= GOAL))
    return Outcome(lines, numbers)


def main() -> None:
    for line in measure().lines:
        print(f"{line.what:<64}{line.measured:<28}{line.ratio:6.3f}  {line.goal}  {'yes' if line.met else 'NO'}")


if __name__ == "__main__":
    main()
