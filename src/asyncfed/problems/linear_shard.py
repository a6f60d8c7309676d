"""One client's part of a problem that a model linear in its features describes."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from asyncfed.problems.objective import is_sparse
from asyncfed.problems.one_client import OneClient
from asyncfed.problems.protocol import Array, ProblemDescription
from asyncfed.problems.sparse_data import SparseRows


@dataclass(frozen=True, eq=False)
class OwnRows:
    """The rows of a single client, as `PackedData`."""

    x: Array
    y: Array
    names: tuple[str, ...] = ()

    @property
    def offsets(self) -> Array:
        """0 and the number of rows."""
        return np.array([0, len(self.y)], np.int64)

    def sha256(self) -> str:
        """The fingerprint of the rows."""
        return sha256(self.x.tobytes() + self.y.tobytes()).hexdigest()


class LinearShard(OneClient):
    """A linear or softmax model and one client's rows: a `ClientShard`. The rows are copied, so nothing else is held.

    Args:
        model: the model; a softmax model has to say how many classes there are.
        x: the client's features, (n, d), an array or a SciPy CSR array.
        y: its targets, (n,).
    """

    def __init__(self, model: ProblemDescription, x: Any, y: Array) -> None:
        self.model = model
        self.rows = (
            SparseRows(x.copy(), y.copy(), np.array([0, len(y)], np.int64))
            if is_sparse(x)
            else OwnRows(x.copy(), y.copy())
        )
        self._alone = model.build(self.rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return LinearShard, (self.model, self.rows.x, self.rows.y)
