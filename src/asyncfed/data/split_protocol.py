"""What a split is: a value that says which client owns which row of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from asyncfed.data.claimed_skew import ClaimedSkew
from asyncfed.data.table import Table
from asyncfed.registry import declare_part


@dataclass(frozen=True, eq=False)
class Assignment:
    """Which client owns which row.

    Args:
        client_of_row: the owner of each row, shape (rows,), whole numbers from 0 to `num_clients` - 1.
        table: the table that was given, the same object, unless the split changes data.
        num_clients: how many clients there are, at least 1.
    """

    client_of_row: np.ndarray
    table: Table
    num_clients: int


@runtime_checkable
class Split(Protocol):
    """What a split is; `asyncfed.register("split")` makes one of your own known by its kind.

    >>> from asyncfed import Config
    >>> class Alternating(Config, tag_field="kind", tag="alternating"):
    ...     claimed_skew = frozenset()
    ...
    ...     def assign(self, table, num_clients, seed):
    ...         return Assignment(np.arange(table.num_rows) % num_clients, table, num_clients)
    >>> isinstance(Alternating(), Split)
    True
    """

    @property
    def claimed_skew(self) -> ClaimedSkew:
        """In which aspects clients are meant to differ: an empty set claims IID clients, None claims nothing."""

    def assign(self, table: Table, num_clients: int | None, seed: int) -> Assignment:
        """The owner of every row. `num_clients` is at least 1, or None where the data say it; every draw is keyed by
        `seed`, so that the same arguments give the same answer.
        """


declare_part("split", Split)
