"""The rows of all clients in one pair of arrays, client after client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.data.sparse_features import as_csr, is_sparse, stack
from asyncfed.data.table import CELLS_AT_ONCE, Dtype, Table, check_rows, float_dtype, read_array, require_finite


@dataclass(frozen=True, eq=False)
class Clients:
    """Client c owns rows `offsets[c]` up to `offsets[c + 1]` of `x` (n, d) and `y` (n,); no client is empty.

    Args:
        x: features, shape (rows, features), float32 or float64, every value finite: an array, or a SciPy CSR array in
            canonical form, which stays sparse in training too.
        y: targets, shape (rows,), of the same dtype; -1 or +1 if they are labels.
        offsets: int64, shape (clients + 1,), from 0 to the number of rows.
        labels: True for classification.
        names: what the clients are called in reports, one each, or empty.

    >>> table = Table.from_arrays([[1.0], [2.0], [3.0]], [10, 20, 30], labels=False)
    >>> clients = Clients.pack(table, np.array([1, 0, 1]), num_clients=2)
    >>> clients.num_examples, clients.client(1)[1]
    (array([1, 2]), array([10., 30.]))
    """

    x: Any
    y: np.ndarray
    offsets: np.ndarray
    labels: bool
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        offsets = self.offsets
        if offsets.ndim != 1 or len(offsets) < 2 or offsets.dtype != np.int64:
            raise DataError(
                f"offsets has shape {offsets.shape} and dtype {offsets.dtype}; "
                "it must be int64 of shape (clients + 1,)."
            )
        if offsets[0] != 0 or offsets[-1] != len(self.y):
            raise DataError(
                f"offsets runs from {offsets[0]} to {offsets[-1]}; it must run from 0 to the {len(self.y)} rows."
            )
        require_rows_of_all(np.diff(offsets))
        check_rows(self.x, self.y, self.labels, "the clients")
        if self.names and len(self.names) != self.num_clients:
            raise DataError(f"names has {len(self.names)} entries; the {self.num_clients} clients need one each.")

    @classmethod
    def pack(cls, table: Table, client_of_row: np.ndarray, num_clients: int, dtype: Dtype = "float64") -> Clients:
        """The table's rows grouped by client, in their old order within each. Rows already in order are not copied.

        Args:
            table: the rows.
            client_of_row: the owner of each row, shape (rows,), whole numbers from 0 to `num_clients` - 1.
            num_clients: how many clients there are; each needs at least one row.
            dtype: "float32" or "float64".

        Returns:
            The clients.
        """
        kind = float_dtype(dtype)
        owners = np.asarray(client_of_row)
        _check_owners(owners, table.num_rows, num_clients)
        sizes = np.bincount(owners, minlength=num_clients)
        require_rows_of_all(sizes)
        offsets = np.zeros(num_clients + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        if bool((owners[1:] >= owners[:-1]).all()):
            x, y = table.x.astype(kind, copy=False), table.y.astype(kind, copy=False)
        else:
            order = np.argsort(owners, kind="stable")
            x, y = _gather(table.x, order, kind), _gather(table.y, order, kind)
        return cls(x, y, offsets, table.labels)

    @classmethod
    def from_lists(
        cls,
        xs: Sequence[object],
        ys: Sequence[object],
        *,
        labels: bool | None = None,
        dtype: Dtype = "float64",
        names: Sequence[str] = (),
    ) -> Clients:
        """Your own clients: `xs[c]` and `ys[c]` are the features and targets of client c.

        Args:
            xs: the features of each client, (rows, features); if they are sparse, of SciPy, they stay so.
            ys: the targets of each client, (rows,).
            labels: as in `Table.from_arrays`, over all clients together.
            dtype: "float32" or "float64".
            names: what the clients are called in reports, one each, or empty.

        Returns:
            The clients.

        >>> Clients.from_lists([[[1.0], [2.0]], [[3.0]]], [[0, 1], [1]], labels=True).y
        array([-1.,  1.,  1.])
        """
        kind = float_dtype(dtype)
        features = [read_array(x, f"x of client {client}") for client, x in enumerate(xs)]
        targets = [read_array(y, f"y of client {client}") for client, y in enumerate(ys)]
        _check_lists(features, targets)
        table = Table.from_arrays(stack(features), np.concatenate(targets), labels)
        offsets = np.cumsum([0, *(len(y) for y in targets)], dtype=np.int64)
        x, y = table.x.astype(kind, copy=False), table.y.astype(kind, copy=False)
        return cls(x, y, offsets, table.labels, tuple(names))

    @property
    def num_clients(self) -> int:
        """How many clients there are."""
        return len(self.offsets) - 1

    @property
    def num_rows(self) -> int:
        """Rows of all clients together."""
        return len(self.y)

    @property
    def num_features(self) -> int:
        """Features of a row."""
        return int(self.x.shape[1])

    @cached_property
    def num_examples(self) -> np.ndarray:
        """Rows of each client, shape (clients,)."""
        return np.diff(self.offsets)

    def client(self, index: int) -> tuple[Any, np.ndarray]:
        """Features and targets of one client: views, not copies, unless they are sparse."""
        if not 0 <= index < self.num_clients:
            raise DataError(f"There is no client {index}; there are clients 0 to {self.num_clients - 1}.")
        rows = slice(self.offsets[index], self.offsets[index + 1])
        return self.x[rows], self.y[rows]

    def sha256(self) -> str:
        """The fingerprint of everything held but the names: values, shapes, dtype, owners, whether there are labels."""
        return rows_sha256(self.x, self.y, self.offsets, f"{self.num_clients} {self.labels}")


def rows_sha256(x: Any, y: np.ndarray, offsets: np.ndarray, words: str) -> str:
    """The fingerprint of packed rows and of some words about them; sparse rows have another than the same as array."""
    digest = sha256(f"{x.shape} {x.dtype.str} {words}{' sparse' if is_sparse(x) else ''}".encode())
    parts = (x.indptr.astype(np.int64), x.indices.astype(np.int64), x.data) if is_sparse(x) else (x,)
    for array in (*parts, y, offsets):
        digest.update(array.data.cast("B"))
    return digest.hexdigest()


def require_rows_of_all(sizes: np.ndarray) -> None:
    """Refuse clients without a row: they could never train."""
    empty = np.flatnonzero(sizes <= 0)
    if len(empty):
        shown = ", ".join(map(str, empty[:5])) + (", ..." if len(empty) > 5 else "")
        raise DataError(
            f"{len(empty)} of {len(sizes)} clients have no rows (client {shown}). "
            "Use fewer clients, more rows, or a split with a larger min_size."
        )


def _gather(values: Any, order: np.ndarray, dtype: np.dtype) -> Any:
    """`values[order]` in another dtype, with no copy in the old one unless they are sparse."""
    if is_sparse(values):
        return as_csr(values[order], dtype, "x")
    out = np.empty(values.shape, dtype)
    step = max(1, CELLS_AT_ONCE // max(1, values[:1].size))
    for start in range(0, len(order), step):
        out[start : start + step] = values[order[start : start + step]]
    return out


def _check_owners(owners: np.ndarray, num_rows: int, num_clients: int) -> None:
    if num_clients < 1:
        raise ConfigError(f"num_clients is {num_clients}; there must be at least 1.")
    if owners.shape != (num_rows,) or owners.dtype.kind not in "iu":
        raise DataError(
            f"client_of_row has shape {owners.shape} and dtype {owners.dtype}; "
            f"it must be whole numbers, one for each of the {num_rows} rows."
        )
    low, high = int(owners.min()), int(owners.max())
    if low < 0 or high >= num_clients:
        raise DataError(
            f"client_of_row runs from {low} to {high}; "
            f"with {num_clients} clients it must stay in 0 to {num_clients - 1}."
        )


def _check_lists(features: list[Any], targets: list[np.ndarray]) -> None:
    if len(features) != len(targets) or not features:
        raise DataError(
            f"xs lists {len(features)} clients and ys {len(targets)}; both need one array per client, at least one."
        )
    require_rows_of_all(np.array([y.size for y in targets]))
    for client, (x, y) in enumerate(zip(features, targets, strict=True)):
        if x.ndim != 2 or y.ndim != 1 or x.shape[0] != len(y):
            raise DataError(
                f"Client {client} has x of shape {x.shape} and y of shape {y.shape}; "
                "x must be (rows, features) and y (rows,) with as many rows."
            )
        if x.shape[1] != features[0].shape[1]:
            raise DataError(
                f"Client {client} has {x.shape[1]} features but client 0 has {features[0].shape[1]}; "
                "all clients need the same columns."
            )
        for name, values in (("x", x), ("y", y)):
            if values.dtype.kind == "f" and not is_sparse(values):
                require_finite(values, f"{name} of client {client}")
