"""Sparse features: SciPy CSR arrays in one canonical form, in the place of an array (n, d)."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError, DataError


def is_sparse(values: object) -> bool:
    """Whether these are sparse rows of SciPy, of any format, without loading SciPy to find out.

    >>> is_sparse(np.eye(2))
    False
    """
    return hasattr(values, "tocsr")


def as_csr(values: Any, dtype: np.dtype | type[np.floating], name: str) -> Any:
    """A CSR array whose rows name each column once, in order, and no zeros; what was given is left as it was."""
    from scipy import sparse  # when first needed: it takes a while to load

    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise DataError(
            f"{name} is a sparse array of shape {values.shape} and dtype {values.dtype}; it must hold numbers, (rows, "
            "features)."
        )
    rows = sparse.csr_array(values, dtype=dtype)
    if not rows.has_canonical_format or not np.all(rows.data):
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    if rows.indices.dtype != np.int32 and max(rows.nnz, rows.shape[1]) <= np.iinfo(np.int32).max:
        places = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)  # half the memory to read
        rows = sparse.csr_array((rows.data, *places), rows.shape)
    return rows


def stack(parts: list[Any]) -> Any:
    """The rows of all parts, one part after another: sparse if one of them is."""
    if not any(map(is_sparse, parts)):
        return np.concatenate(parts)
    from scipy import sparse

    return sparse.vstack(parts, format="csr")


def require_dense(values: object, reader: str) -> None:
    """Refuse sparse rows where each column is read from end to end; `reader` says who does."""
    if is_sparse(values):
        raise ConfigError(
            f"{reader} reads whole columns, and these rows are sparse. Use the split iid, in_order, quantity_skew, "
            "label_dirichlet or quantile_dirichlet, or give the rows as an array (x.toarray())."
        )


def some_columns(rows: Any, limit: int, rng: np.random.Generator) -> np.ndarray:
    """At most `limit` columns, in order, drawn as often as they have non-zeros: most columns are empty in most rows."""
    counts = np.bincount(rows.indices, minlength=rows.shape[1])
    limit = min(limit, int(np.count_nonzero(counts)))
    return np.sort(rng.choice(len(counts), limit, replace=False, p=counts / counts.sum() if limit else None))
