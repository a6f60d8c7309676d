"""Clients whose rows may have any shape: images, sequences, tokens. Plain arrays; nothing here needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np

from asyncfed.core.errors import DataError
from asyncfed.problems.protocol import Array

Pairs: TypeAlias = Sequence[tuple[Any, Any]]


@dataclass(frozen=True, eq=False)
class TensorClients:
    """Clients' rows of any shape, one client after another, for PyTorch problems.

    Whole numbers stay whole (tokens, classes); other numbers take the model's precision when they are used. A client
    may be empty in rows that are held out, not in those to train with.

    Args:
        x: the inputs, (n, …), finite numbers.
        y: the targets, (n, …), finite numbers.
        offsets: client c owns rows `offsets[c]` up to `offsets[c + 1]`: C + 1 whole numbers, 0 to n, that never fall.
        names: what the clients are called in reports, one each, or empty.

    >>> clients = TensorClients.from_pairs([(np.zeros((3, 1, 8, 8)), [0, 1, 2]), (np.ones((2, 1, 8, 8)), [3, 3])])
    >>> clients.x.shape, clients.num_examples
    ((5, 1, 8, 8), array([3, 2]))
    """

    x: Array
    y: Array
    offsets: Array
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.x.ndim < 1 or self.y.ndim < 1 or len(self.x) != len(self.y):
            raise DataError(f"x has shape {self.x.shape} and y {self.y.shape}; both need one entry per row.")
        sizes = np.diff(self.offsets)
        if self.offsets.ndim != 1 or len(sizes) < 1 or self.offsets[0] != 0 or self.offsets[-1] != len(self.x):
            raise DataError(f"offsets must run from 0 to the {len(self.x)} rows, with one number more than clients.")
        if sizes.min() < 0:
            raise DataError(f"offsets falls at client {int(sizes.argmin())}; it must never fall.")
        if not len(self.x):
            raise DataError("There are no rows; give some client some.")
        if self.names and len(self.names) != len(sizes):
            raise DataError(f"names has {len(self.names)} entries; the {len(sizes)} clients need one each.")
        for name, values in (("x", self.x), ("y", self.y)):
            _check_numbers(name, values)

    @classmethod
    def from_pairs(cls, pairs: Pairs, names: Sequence[str] = ()) -> TensorClients:
        """Your own clients.

        Args:
            pairs: `pairs[c]` is (x, y) of client c, arrays or CPU tensors with one entry per row.
            names: what the clients are called in reports, one each, or empty.
        """
        if not pairs:
            raise DataError("There are no clients; give one (x, y) pair per client.")
        xs, ys = ([np.asarray(part) for part in parts] for parts in zip(*pairs, strict=True))
        some = [client for client, x in enumerate(xs) if x.shape[:1] != (0,)] or [0]
        first = some[0]  # what is empty has no rows whose shape could be compared
        for client, (x, y) in enumerate(zip(xs, ys, strict=True)):
            if x.ndim < 1 or y.ndim < 1 or len(x) != len(y):
                raise DataError(f"Client {client} has x of shape {x.shape} and y of shape {y.shape}; rows must match.")
            if len(x) and (x.shape[1:] != xs[first].shape[1:] or y.shape[1:] != ys[first].shape[1:]):
                raise DataError(
                    f"A row of client {client} has x of shape {x.shape[1:]} and y of shape {y.shape[1:]}, one of "
                    f"client {first} {xs[first].shape[1:]} and {ys[first].shape[1:]}; all rows need the same shapes."
                )
        offsets = np.cumsum([0, *map(len, xs)], dtype=np.int64)
        x, y = (np.concatenate([parts[client] for client in some]) for parts in (xs, ys))
        return cls(x, y, offsets, tuple(names))

    @classmethod
    def pack(cls, x: Any, y: Any, client_of_row: Any, num_clients: int, names: Sequence[str] = ()) -> TensorClients:
        """One table, divided among clients.

        Args:
            x: the inputs, (n, …).
            y: the targets, (n, …).
            client_of_row: the number of each row's client, 0 … `num_clients` − 1.
            num_clients: how many clients there are, 1 or more.
            names: what the clients are called in reports, one each, or empty.
        """
        owners = np.asarray(client_of_row)
        if not len(x) or owners.shape != (len(x),) or owners.dtype.kind not in "iu" or owners.min() < 0:
            raise DataError(f"client_of_row must hold one client number for each of the {len(x)} rows.")
        if owners.max() >= num_clients:
            raise DataError(f"client_of_row names client {owners.max()}, but num_clients is {num_clients}.")
        order = np.argsort(owners, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=num_clients))]).astype(np.int64)
        return cls(np.asarray(x)[order], np.asarray(y)[order], offsets, tuple(names))

    @property
    def num_clients(self) -> int:
        """C, the number of clients."""
        return len(self.offsets) - 1

    @property
    def num_examples(self) -> Array:
        """Rows of each client, (C,)."""
        return np.diff(self.offsets)

    def sha256(self) -> str:
        """The fingerprint of everything held but the names: values, shapes, dtypes and owners."""
        digest = sha256()
        for array in (self.x, self.y, self.offsets):
            digest.update(f"{array.shape} {array.dtype.str}".encode())
            digest.update(np.ascontiguousarray(array).data.cast("B"))
        return digest.hexdigest()


def _check_numbers(name: str, values: Array) -> None:
    if values.dtype.kind not in "fiub":
        raise DataError(f"{name} holds {values.dtype}; it must hold numbers.")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise DataError(f"{name} holds numbers that are not finite; remove or fill them first.")
