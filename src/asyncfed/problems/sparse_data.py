"""Sparse rows (SciPy CSR) in the place of an array (n, d): what differs for a problem, and who refuses them."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.problems.objective import is_sparse
from asyncfed.problems.protocol import Array


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Sparse rows of some clients, as `NamedData`: client c owns rows `offsets[c]` up to `offsets[c + 1]`."""

    x: Any
    y: Array
    offsets: Array
    names: tuple[str, ...] = ()

    def sha256(self) -> str:
        """The fingerprint of the rows and their owners."""
        digest = sha256(f"sparse {self.x.shape} {self.x.dtype.str}".encode())
        for array in (self.x.indptr, self.x.indices, self.x.data, self.y, self.offsets):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def canonical_csr(x: Any, dtype: Any = None) -> Any:
    """The rows as a CSR array that names each column of a row once, in order; copied only if they are not."""
    from scipy import sparse  # when first needed: it takes a while to load

    rows = sparse.csr_array(x, dtype=dtype)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def refuse_sparse(x: Any, reader: str) -> None:
    """Refuse sparse rows where only an array will do; `reader` says who needs one."""
    if is_sparse(x):
        raise ConfigError(
            f"{reader} is trained on rows (n, d) as an array, and these are sparse. Learn a linear model "
            "(asyncfed.problems.Linear), or give the rows as an array: x.toarray()."
        )


def own_margins(x: Any, offsets: Array, weights: Array) -> Array:
    """z·w of each row, w being its client's own, `weights` (C, d)."""
    bounds = zip(offsets[:-1], offsets[1:], weights, strict=True)
    return np.concatenate([x[a:b] @ own for a, b, own in bounds])
