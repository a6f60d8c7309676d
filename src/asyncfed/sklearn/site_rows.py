"""The rows of a fit, packed client by client, with features that are shifted and scaled alike on all clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError, DataError

Array: TypeAlias = NDArray[Any]
Weighting: TypeAlias = Literal["rows", "clients"]


@dataclass(frozen=True, eq=False)
class SiteRows:
    """What clients train on: client c owns rows `offsets[c]` up to `offsets[c + 1]` of `z` (n, p) and `y`.

    A column of z is (x − shift) / scale; the last one is the bias's ones if there is an intercept. `weights` (C,) say
    what each client's mean loss counts in the objective; they sum to 1.
    """

    z: Array
    y: Array
    offsets: Array
    weights: Array
    shift: Array
    scale: Array
    fit_intercept: bool
    names: tuple[str, ...]

    @property
    def num_clients(self) -> int:
        """C, the number of clients."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Array:
        """Rows of each client, shape (C,)."""
        return np.diff(self.offsets)

    def raw_model(self, model: Array) -> tuple[Array, Array]:
        """(coefficients (K, d), intercepts (K,)) for features as they were, of a model (K, p) for z."""
        d = len(self.scale)
        coefficients = model[:, :d] / self.scale
        if not self.fit_intercept:
            return coefficients, np.zeros(len(model))
        return coefficients, model[:, d] - coefficients @ self.shift

    def penalties(self, l2: float, penalize_intercept: bool) -> Array:
        """The L2 weight of each column's param, (p,), that is l2 on each of the coefficients as they are for x."""
        of_intercept = [l2 if penalize_intercept else 0.0] if self.fit_intercept else []
        return np.concatenate([l2 / self.scale**2, of_intercept])


def client_of_rows(num_rows: int, groups: Any, num_clients: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """(each row's client, the clients' names). Without groups, rows are dealt to the clients in turn.

    >>> client_of_rows(3, ["north", "south", "north"], 5)
    (array([0, 1, 0]), ('north', 'south'))
    >>> client_of_rows(5, None, 2)
    (array([0, 1, 0, 1, 0]), ())
    """
    if groups is None:
        if num_clients < 1:
            raise ConfigError(f"num_clients is {num_clients}; it must be at least 1.")
        return np.arange(num_rows) % min(num_clients, num_rows), ()
    sites = np.asarray(groups)
    if sites.shape != (num_rows,):
        raise DataError(f"groups has shape {sites.shape}; it must hold one site for each of the {num_rows} rows.")
    missing = sum(site is None or site != site for site in sites.tolist())
    if missing:
        raise DataError(f"groups holds no site for {missing} of {num_rows} rows. Name it, or leave those rows out.")
    names, owner = np.unique(sites, return_inverse=True)
    return owner.astype(np.int64), tuple(str(name) for name in names.tolist())


def pack_sites(
    x: Array,
    y: Array,
    groups: Any,
    *,
    num_clients: int,
    weighting: Weighting,
    fit_intercept: bool,
    centred: bool,
) -> SiteRows:
    """Rows by client. Shift and scale come from each client's sums of x and x², which is all it would send for them.

    Args:
        x: the features, (n, d).
        y: the targets, (n,) or (n, K).
        groups: each row's site; None: dealt in turn.
        num_clients: to how many clients, 1 or more, if there are no groups.
        weighting: "rows" if every row counts the same, "clients" if every client does.
        fit_intercept: whether there is a column of ones.
        centred: whether features are shifted by their mean, which an intercept that is not penalised makes good.
    """
    if weighting not in ("rows", "clients"):
        raise ConfigError(f'weighting is "{weighting}"; it must be "rows" or "clients".')
    owner, names = client_of_rows(len(y), groups, num_clients)
    order = np.argsort(owner, kind="stable")
    sizes = np.bincount(owner)
    weights = sizes / len(y) if weighting == "rows" else np.full(len(sizes), 1.0 / len(sizes))
    rows = x[order].astype(np.float64)
    of_row = np.repeat(weights / sizes, sizes)
    shift = of_row @ rows if centred and fit_intercept else np.zeros(x.shape[1])
    largest = np.abs(rows).max(axis=0, initial=0.0)
    rows -= shift
    scale = np.sqrt(of_row @ rows**2)
    constant = ~(scale > 64 * np.finfo(np.float64).eps * largest)  # only rounding is left of such a column
    rows[:, constant] = 0.0
    scale[constant] = 1.0
    z = np.ones((len(y), x.shape[1] + fit_intercept))
    z[:, : x.shape[1]] = rows / scale
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return SiteRows(z, y[order], offsets, weights, shift, scale, fit_intercept, names)
