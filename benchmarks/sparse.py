"""SGD on sparse rows against the dense kernel and against a plain loop in NumPy and SciPy, in one run.

Run with `python -m benchmarks.sparse`. The work is W1's, 10 clients of 200 samples in batches of 32, with 10,000
features of which a row has 50; logistic loss. All three train the same way and must arrive at the same models
within rounding. They are timed in turn by processor time, and the least time of each counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from asyncfed.core.random import draw_key, purpose_key
from asyncfed.kernels.losses import LOGISTIC
from asyncfed.kernels.row_orders import epoch_orders
from asyncfed.kernels.sgd import LocalSgd
from asyncfed.kernels.sparse_sgd import SparseSgd
from asyncfed.kernels.tasks import Tasks
from benchmarks.measure import best_in_turn
from benchmarks.outcome import Line, Outcome

Array = NDArray[Any]
NUM_CLIENTS, ROWS, BATCH, RATE, EPOCHS = 10, 200, 32, 0.5, 10
FEATURES, NON_ZEROS = 10_000, 50
GOAL = 20.0
ROUNDING = {"float64": 1e-12, "float32": 1e-4}


class Case(NamedTuple):
    """What is trained: the precision, the L2 penalty and the proximal term."""

    dtype: str
    l2: float
    prox: float

    def __str__(self) -> str:
        pulls = [name for name, value in (("L2", self.l2), ("proximal term", self.prox)) if value]
        return f"{self.dtype}{', ' if pulls else ''}{' and '.join(pulls)}"


CASES = [Case("float64", 0.0, 0.0), Case("float64", 1e-3, 0.0), Case("float64", 1e-3, 0.1), Case("float32", 0.0, 0.0)]


class Workload:
    """The trainings of a case, made from a seed: the same rows sparse and dense, a key per client."""

    def __init__(self, case: Case, seed: int = 0, features: int = FEATURES, non_zeros: int = NON_ZEROS) -> None:
        rng = np.random.Generator(np.random.Philox(key=purpose_key(seed, "sparse benchmark")))
        count = NUM_CLIENTS * ROWS
        columns = np.concatenate([np.sort(rng.choice(features, non_zeros, replace=False)) for _ in range(count)])
        values = rng.normal(size=count * non_zeros).astype(case.dtype) / np.sqrt(non_zeros)
        starts = np.arange(0, count * non_zeros + 1, non_zeros)
        places = columns.astype(np.int32), starts.astype(np.int32)
        self.x = sparse.csr_array((values.astype(case.dtype), *places), (count, features))
        response = self.x @ rng.normal(size=features)
        self.y = np.where(response > 0, 1.0, -1.0).astype(case.dtype)
        self.case, self.offsets = case, np.arange(0, count + 1, ROWS)
        self.keys = np.array([draw_key(seed, c, 0) for c in range(NUM_CLIENTS)], dtype=np.uint64)
        self.start = np.zeros((NUM_CLIENTS, features + 1), case.dtype)
        self.steps = NUM_CLIENTS * EPOCHS * -(-ROWS // BATCH)
        work = np.tile([float(EPOCHS), BATCH, RATE, 0.0, case.prox], (NUM_CLIENTS, 1))
        self.tasks = Tasks(np.arange(NUM_CLIENTS), self.keys, work)

    def kernel(self, kind: type[SparseSgd | LocalSgd], x: Any) -> Callable[[], Array]:
        """All clients' trainings by a kernel of the package, on one thread."""
        model = kind(x, self.y, self.offsets, LOGISTIC, self.case.l2, True, True)
        return lambda: model.train(self.start, self.tasks)

    def plain_loop(self) -> Array:
        """The same in NumPy and SciPy, as one would write it: products with the rows of a batch."""
        return np.stack([self._train_plainly(client) for client in range(NUM_CLIENTS)])

    def _train_plainly(self, client: int) -> Array:
        case, rows = self.case, slice(self.offsets[client], self.offsets[client + 1])
        x, y, start = self.x[rows], self.y[rows], self.start[client]
        weights, bias, pull = start[:-1].copy(), start[-1], case.l2 + case.prox
        for order in epoch_orders(int(self.keys[client]), ROWS, EPOCHS):
            for first in range(0, ROWS, BATCH):
                chosen = order[first : first + BATCH]
                z, labels = x[chosen], y[chosen]
                slopes = -labels * expit(-labels * (z @ weights + bias)) / len(chosen)
                change, change_of_bias = slopes @ z, slopes.sum()
                if pull:
                    change += pull * weights - case.prox * start[:-1]
                    change_of_bias += pull * bias - case.prox * start[-1]
                weights -= RATE * change
                bias -= RATE * change_of_bias
        return np.append(weights, bias)


def compare(case: Case, repeats: int, **shape: int) -> dict[str, float]:
    """Nanoseconds of processor time per step of all three, and the largest difference of the params.

    Raises AssertionError when they do not train to the same params within rounding.
    """
    work = Workload(case, **shape)
    jobs = {
        "sparse": work.kernel(SparseSgd, work.x),
        "dense": work.kernel(LocalSgd, work.x.toarray()),
        "plain": work.plain_loop,
    }
    trained = {name: job() for name, job in jobs.items()}
    difference = max(float(np.abs(trained["sparse"] - trained[name]).max()) for name in ("dense", "plain"))
    if not difference <= ROUNDING[case.dtype]:
        raise AssertionError(f"{case}: the three differ by {difference:.2g}; that is more than rounding.")
    best = best_in_turn(jobs, repeats)
    found = {f"{name}_ns_per_step": best[name].cpu / work.steps * 1e9 for name in jobs}
    return {**found, "largest_difference": difference}


def measure(repeats: int = 7) -> Outcome:
    """Every case, in turn with the dense kernel and the plain loop."""
    lines, numbers = [], {}
    for case in CASES:
        found = numbers[str(case)] = compare(case, repeats)
        own = found["sparse_ns_per_step"]
        for name, other, goal in (("dense kernel", "dense", GOAL), ("NumPy and SciPy loop", "plain", None)):
            yardstick = found[f"{other}_ns_per_step"]
            what = f"{name} / sparse kernel, d = {FEATURES:,}, {NON_ZEROS} non-zeros a row, {case}"
            met = None if goal is None else yardstick / own >= goal
            wanted = "" if goal is None else f">= {goal:g}x"
            lines.append(Line(what, f"{own:,.0f} ns/step, {name} {yardstick:,.0f}", yardstick / own, wanted, met))
    return Outcome(lines, numbers)


def main() -> None:
    for line in measure().lines:
        print(f"{line.what:<96}{line.measured:<56}{line.ratio:7.1f}  {line.goal}")


if __name__ == "__main__":
    main()
