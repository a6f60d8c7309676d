"""Clients that hold no rows: what a problem on them needs, and clients by a function of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.problems.protocol import Array

if TYPE_CHECKING:
    from asyncfed.kernels.population_rows import RowLaw


class VirtualClients(Protocol):
    """Clients whose rows are made when they are asked for. The same client must always have the same rows."""

    @property
    def num_clients(self) -> int:
        """How many clients there are; they are numbered from 0."""
        ...

    @property
    def num_features(self) -> int:
        """Features of a row."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of features and targets: float32 or float64."""
        ...

    @property
    def labels(self) -> bool:
        """Whether targets are −1 and +1."""
        ...

    @property
    def sizes(self) -> Sequence[int]:
        """The rows of each client; it need not hold a list."""
        ...

    @property
    def seed(self) -> int:
        """By which the clients that a model is measured on are drawn."""
        ...

    @property
    def measured_clients(self) -> int:
        """How many those are, at most."""
        ...

    @property
    def law(self) -> RowLaw | None:
        """What all rows are drawn from, if it is that of `kernels/population_rows.py`: then losses have a formula."""
        ...

    def count_rows(self, clients: Sequence[int]) -> Array:
        """The rows of each of these clients."""
        ...

    def pack(self, clients: Sequence[int], threads: int = 1, held_out: bool = False) -> tuple[Array, Array, Array]:
        """Features, targets and offsets of these clients' rows; `held_out`: of rows that nobody trains on."""
        ...

    def sha256(self) -> str:
        """The fingerprint of everything that the rows follow from."""
        ...


class _Counted(Sequence[int]):
    """What a function says of each client."""

    def __init__(self, num_clients: int, count: Callable[[int], int]) -> None:
        self._num_clients, self._count = num_clients, count

    def __len__(self) -> int:
        return self._num_clients

    def __getitem__(self, client: Any) -> Any:
        if not 0 <= client < self._num_clients:
            raise IndexError(client)
        return int(self._count(client))

    def __iter__(self) -> Iterator[int]:
        return map(self.__getitem__, range(self._num_clients))


@dataclass(frozen=True, eq=False)
class FunctionClients:
    """Clients whose rows a function of your own makes, or reads, when they train: nothing is kept of any client.

    Args:
        rows: `rows(client)` answers with features (n, d) and targets (n,); the same client always with the same.
        num_clients: how many clients there are, 1 or more.
        num_features: d, 1 or more.
        num_rows: n of every client, or a function of the client; 1 or more.
        name: what the function and its data are called, with their version: a run's file keeps it, and is continued
            or verified only with the same.
        held_out_rows: the same as `rows`, of rows that nobody trains on; None: there are none.
        labels: whether targets are −1 and +1.
        dtype: float32 or float64.
        seed: by which the clients that a model is measured on are drawn.
        measured_clients: how many those are, at most.

    >>> people = FunctionClients(lambda c: ([[c / 1e6]], [2.0 * c / 1e6]), 1_000_000, 1, num_rows=1, name="a line, 1")
    >>> people.pack([3, 500_000])[1].tolist()
    [6e-06, 1.0]
    """

    rows: Callable[[int], tuple[Any, Any]]
    num_clients: int
    num_features: int
    num_rows: int | Callable[[int], int]
    name: str
    held_out_rows: Callable[[int], tuple[Any, Any]] | None = None
    labels: bool = False
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.float64))
    seed: int = 0
    measured_clients: int = 1000

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype))  # which may be given as numpy.float32
        if self.dtype not in (np.float32, np.float64):
            raise ConfigError(f"dtype is {self.dtype}; rows are float32 or float64. Use one of them.")
        if not callable(self.num_rows):
            object.__setattr__(self, "num_rows", int(self.num_rows))  # or numpy's whole numbers
        counts = (self.num_clients, self.num_features, self.measured_clients)
        if min(counts) < 1 or (isinstance(self.num_rows, int) and self.num_rows < 1):
            raise ConfigError(
                f"There are {self.num_clients} clients with {self.num_features} features and {self.num_rows} rows, of "
                f"which {self.measured_clients} are measured; all of these must be at least 1."
            )

    @property
    def law(self) -> None:
        """Not known."""
        return None

    @property
    def sizes(self) -> Sequence[int]:
        """The rows of each client, asked for one by one."""
        rows = self.num_rows
        return _Counted(self.num_clients, (lambda client: rows) if isinstance(rows, int) else rows)

    def count_rows(self, clients: Sequence[int]) -> Array:
        """The rows of each of these clients."""
        sizes = self.sizes
        return np.array([sizes[client] for client in clients], np.int64)

    def pack(self, clients: Sequence[int], threads: int = 1, held_out: bool = False) -> tuple[Array, Array, Array]:
        """Features, targets and offsets of these clients' rows, the function asked once for each."""
        make = self.held_out_rows if held_out else self.rows
        assert make is not None
        made = [self._checked(client, *make(client), held_out) for client in clients]
        offsets = np.cumsum([0, *(len(y) for _, y in made)], dtype=np.int64)
        return np.concatenate([x for x, _ in made]), np.concatenate([y for _, y in made]), offsets

    def _checked(self, client: int, x: Any, y: Any, held_out: bool) -> tuple[Array, Array]:
        features, targets = np.ascontiguousarray(x, self.dtype), np.ascontiguousarray(y, self.dtype)
        rows = len(targets) if held_out else self.sizes[client]
        if features.shape != (rows, self.num_features) or targets.shape != (rows,) or rows < 1:
            raise DataError(
                f"rows({client}) gave features of shape {features.shape} and targets of shape {targets.shape}; client "
                f"{client} has {rows} rows of {self.num_features} features. Correct the function, or num_rows."
            )
        if not (np.isfinite(features).all() and np.isfinite(targets).all()):
            raise DataError(f"rows({client}) gave numbers that are not finite. Fill them in, or leave their rows out.")
        if self.labels and not (np.abs(targets) == 1).all():
            raise DataError(f"rows({client}) gave targets that are not −1 or +1, but labels are promised.")
        return features, targets

    def sha256(self) -> str:
        """The fingerprint of the name and of the rows of the first and the last client."""
        words = f"function {self.name} {self.num_clients} {self.num_features} {self.labels} {self.dtype.str}"
        digest = sha256(f"{words} {self.seed} {self.measured_clients}".encode())
        for array in self.pack([0, self.num_clients - 1]):
            digest.update(array.tobytes())
        return digest.hexdigest()
