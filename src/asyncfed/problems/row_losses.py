"""The losses of single rows, for what a mean over rows cannot say: how certain it is."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError


class RowLosses(NamedTuple):
    """The loss of each row of a part, without penalty: client c has `loss[offsets[c]:offsets[c + 1]]`."""

    loss: NDArray[np.float64]
    offsets: NDArray[np.int64]


@runtime_checkable
class MeasuresRows(Protocol):
    """A problem that can measure a model on single rows."""

    @property
    def parts(self) -> tuple[str, ...]:
        """`training`, and what else there is of `validation` and `test`."""
        ...

    def row_losses(self, params: NDArray[Any], part: str) -> RowLosses:
        """Of one model (p,) that all clients use, or of a model for each client (C, p)."""
        ...


@runtime_checkable
class MeasuresClientRows(Protocol):
    """A problem that can measure a model on the single rows that one client trains on."""

    def client_row_losses(self, params: NDArray[Any], client: int) -> NDArray[np.float64]:
        """The loss of each row of this client, without penalty, shape (n_c,); to the last bit what its shard gives."""
        ...


def client_row_losses(problem: object, params: NDArray[Any], client: int) -> NDArray[np.float64]:
    """The losses of one client's rows, if the problem can measure them; otherwise a `ConfigError`."""
    if not isinstance(problem, MeasuresClientRows):
        raise ConfigError(
            f"work.start_rms asks for the losses of single rows, which {type(problem).__name__} does not measure. "
            "Give it `client_row_losses`, see asyncfed.problems.row_losses.MeasuresClientRows, or leave start_rms out "
            "and use a strategy that does without it."
        )
    return problem.client_row_losses(params, client)


def standard_error(rows: RowLosses) -> float:
    """The standard error of the mean over clients of each one's mean loss, as rows were drawn within clients.

        (1/K) √(Σ_c s_c² / n_c)

    over the K clients that have rows, s_c² the variance of a client's row losses; where a client has a single row, the
    variance pooled over all clients; where all have, that of all rows, which no client's mean can be taken from.
    NaN for a single row in all.

    >>> standard_error(RowLosses(np.array([1.0, 3.0, 2.0, 2.0]), np.array([0, 2, 4])))
    0.5
    >>> standard_error(RowLosses(np.array([1.0, 3.0]), np.array([0, 1, 2])))
    1.0
    """
    sizes = np.diff(rows.offsets)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    some = np.maximum(sizes, 1)
    means = np.bincount(owner, rows.loss, len(sizes)) / some
    squares = np.bincount(owner, (rows.loss - means[owner]) ** 2, len(sizes))
    freedom = np.maximum(sizes - 1, 0)
    if freedom.any():
        pooled = float(squares.sum()) / int(freedom.sum())
    else:
        pooled = float(rows.loss.var(ddof=1)) if len(rows.loss) > 1 else float("nan")
    variances = np.where(freedom > 0, squares / np.maximum(freedom, 1), pooled)
    clients = int((sizes > 0).sum())
    if not clients:
        return float("nan")
    return float(np.sqrt(np.sum((variances / some)[sizes > 0]))) / clients
