"""LowRank: each matrix of the model as a product of two thin ones."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import draw_key
from asyncfed.core.record import Config, replace
from asyncfed.registry import register
from asyncfed.uplinks.chain import Arrays, take


class Tensor(NamedTuple):
    """Where a tensor lies in the change, its rows and columns as a matrix, and whether it is sent whole."""

    first: int
    rows: int
    columns: int
    whole: bool

    @property
    def entries(self) -> slice:
        """Its place in the change."""
        return slice(self.first, self.first + self.rows * self.columns)

    def sent(self, rank: int) -> int:
        """How many numbers are sent of it."""
        return self.rows * self.columns if self.whole else rank * (self.rows + self.columns)


@register("uplink")
class LowRank(Config, tag_field="kind", tag="low_rank"):
    """The change M of each weight matrix (m, n) becomes a product of rank r, by subspace iteration from a random start:

        Q = random normal (n, r);   repeat: P = orthonormalised M Q, Q = Mᵀ P;   C(M) = P Qᵀ

    A message holds P and Q, r (m + n) numbers in place of m n. Tensors of more dimensions count as matrices of their
    first dimension by all others, as convolutions do; vectors, and matrices that would not become shorter, are sent
    whole. Biased: use it inside `ErrorFeedback`. PowerSGD begins with the Q of the last step; here the start is drawn
    for each message, so that a client needs no memory, and `iterations` makes up for it.

    Args:
        rank: r, 1 or more.
        iterations: 1 or more; each comes nearer to the best product of this rank, and takes as long again.
        shapes: of the model's tensors, in their order. Left empty, a run fills in those of its problem; on its own, an
            empty one stands for a single vector.

    >>> codec = LowRank(rank=2, shapes=((100, 50), (100,)))
    >>> codec.size(num_params=5100, itemsize=4), codec.contraction(5100)
    (1600, 0.04)

    Vogels, Karimireddy & Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization",
    NeurIPS 2019.
    """

    rank: int = 2
    iterations: int = 2
    shapes: tuple[tuple[int, ...], ...] = ()
    remembers = False

    def __post_init__(self) -> None:
        for name in ("rank", "iterations"):
            if getattr(self, name) < 1:
                raise ConfigError(f"uplink.{name} is {getattr(self, name)}; it must be 1 or more.")
        if any(size < 0 for shape in self.shapes for size in shape):
            raise ConfigError(f"uplink.shapes are {self.shapes}; no dimension may be negative.")

    def with_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> LowRank:
        """The same for a model with these tensors; itself, if it was told its shapes."""
        return self if self.shapes else replace(self, shapes=shapes)

    def init(self, num_params: int, dtype: np.dtype[Any]) -> Arrays:
        """No memory."""
        return {}

    def size(self, num_params: int, itemsize: int) -> int:
        """Bytes of all factors, and of what is sent whole."""
        return self._count(num_params) * itemsize

    def contraction(self, num_params: int) -> float:
        """δ = the least r / min(m, n) of the matrices that are not sent whole, in the mean over the random start.

        P projects M on the span of M Q. By the symmetry of normal numbers the mean projection is diagonal in M's left
        singular vectors, its entries sum to r and grow with the singular values; so the share of |M|² that is kept is
        at least r over their number (Chebyshev's sum inequality). Attained where all singular values are equal; where
        they fall off, far more is kept, and by more iterations still more.
        """
        shares = [self.rank / min(t.rows, t.columns) for t in self.tensors(num_params) if not t.whole]
        return min(shares, default=1.0)

    def variance(self, num_params: int) -> float | None:
        """None: a projection is biased. 0 if all is sent whole."""
        return 0.0 if all(tensor.whole for tensor in self.tensors(num_params)) else None

    def tensors(self, num_params: int) -> list[Tensor]:
        """The tensors of a change. Raises ConfigError if the shapes are of another number of parameters."""
        found, first = [], 0
        for shape in self.shapes or ((num_params,),):
            rows, columns = (shape[0], prod(shape[1:])) if len(shape) > 1 else (prod(shape), 1)
            found.append(Tensor(first, rows, columns, self.rank * (rows + columns) >= rows * columns))
            first += rows * columns
        if first != num_params:
            raise ConfigError(
                f"uplink.shapes hold {first} numbers, and the model has {num_params}. Leave shapes out: a run fills "
                "them in."
            )
        return found

    def encode(self, memory: Arrays, change: np.ndarray, key: int) -> tuple[Arrays, Arrays]:
        """Tensor after tensor: P and Q, or the tensor itself."""
        parts = [
            change[tensor.entries] if tensor.whole else self._factors(change, tensor, draw_key(key, number, 1))
            for number, tensor in enumerate(self.tensors(change.size))
        ]
        return {"factors": np.concatenate(parts).astype(change.dtype, copy=False)}, memory

    def decode(self, message: Arrays, num_params: int, dtype: np.dtype[Any]) -> np.ndarray:
        """The products."""
        from asyncfed.kernels.arrays import plain
        from asyncfed.kernels.low_rank import thin_product

        sent = plain(take(message, "factors", (self._count(num_params),), dtype))
        change, first = np.empty(num_params, dtype), 0
        for tensor in self.tensors(num_params):
            part = sent[first : first + tensor.sent(self.rank)]
            first += part.size
            if tensor.whole:
                change[tensor.entries] = part
            else:
                left, right = np.split(part.reshape(-1, self.rank), [tensor.rows])
                thin_product(left, right, change[tensor.entries].reshape(tensor.rows, tensor.columns))
        return change

    def _count(self, num_params: int) -> int:
        return sum(tensor.sent(self.rank) for tensor in self.tensors(num_params))

    def _factors(self, change: np.ndarray, tensor: Tensor, key: int) -> np.ndarray:
        """P, then Q; all Q are NaN where an entry is not finite, so that the server finds it."""
        from asyncfed.kernels.keyed_normals import keyed_normals
        from asyncfed.kernels.low_rank import low_rank_factors

        matrix = change[tensor.entries].astype(np.float64).reshape(tensor.rows, tensor.columns)
        scale = float(np.abs(matrix).max())
        if not np.isfinite(scale):
            return np.full(tensor.sent(self.rank), np.nan)
        power = float(np.ldexp(1.0, int(np.frexp(scale)[1]) - 1)) if scale > 0 else 1.0
        start = keyed_normals(key, tensor.columns * self.rank).reshape(tensor.columns, self.rank)
        left, right = low_rank_factors(matrix / power, start, self.iterations)  # so that no square is out of range
        return np.concatenate([left.ravel(), right.ravel() * power])
