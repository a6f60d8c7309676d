"""A table: the rows of a data set before they have owners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.data.sparse_features import as_csr, is_sparse

Dtype: TypeAlias = Literal["float32", "float64"]
CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Table:
    """Features `x` of shape (n, d) and targets `y` of shape (n,), both float32 or both float64, every value finite.

    Args:
        x: features, shape (rows, features), C-contiguous, or a SciPy CSR array in canonical form.
        y: targets, shape (rows,), C-contiguous.
        labels: True for classification, and then every target is -1 or +1.

    >>> table = Table.from_arrays([[1, 2], [3, 4], [5, 6]], [0, 1, 1], labels=True)
    >>> table.num_rows, table.num_features, table.y
    (3, 2, array([-1.,  1.,  1.]))
    """

    x: Any
    y: np.ndarray
    labels: bool

    def __post_init__(self) -> None:
        check_rows(self.x, self.y, self.labels, "the table")

    @classmethod
    def from_arrays(cls, x: object, y: object, labels: bool | None = None) -> Table:
        """A table of anything numpy can read. float32 features stay float32; all else becomes float64.

        Args:
            x: features, (rows, features); a sparse array or matrix of SciPy stays sparse, as CSR.
            y: targets, (rows,).
            labels: True: the two distinct targets become -1 (the smaller) and +1. False: targets are numbers to
                regress. None: they are labels exactly when there are two distinct ones.

        Returns:
            The table.
        """
        features = read_array(x, "x")
        dtype = np.float32 if features.dtype == np.float32 else np.float64
        features = as_csr(features, dtype, "x") if is_sparse(features) else _as_floats(features, dtype, "x")
        targets = read_array(y, "y")
        if targets.dtype.kind == "f":
            require_finite(targets, "y")
        if labels is None:
            labels = len(_distinct(targets)) == 2
        numbers = signed_labels(targets) if labels else targets
        return cls(features, _as_floats(numbers, dtype, "y"), labels)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.y)

    @property
    def num_features(self) -> int:
        """Features of a row."""
        return int(self.x.shape[1])


def float_dtype(name: str) -> np.dtype:
    """The numpy dtype of a name, if it is one the kernels know."""
    if name not in get_args(Dtype):
        raise ConfigError(f'dtype is "{name}"; it must be "float32" or "float64".')
    return np.dtype(name)


def signed_labels(targets: np.ndarray) -> np.ndarray:
    """Two distinct values as -1 (the smaller) and +1; targets that already are -1 or +1 stay, even one-sided.

    >>> signed_labels(np.array(["ham", "spam", "ham"]))
    array([-1.,  1., -1.])
    """
    classes = _distinct(targets)
    if np.isin(classes, (-1, 1)).all():
        return np.asarray(targets, np.float64)
    if len(classes) != 2:
        shown = ", ".join(str(c) for c in classes[:5]) + (", ..." if len(classes) > 5 else "")
        raise DataError(
            f"y has {len(classes)} classes ({shown}); classification here needs exactly 2. "
            "Keep two of them (or one against the rest), or pass labels=False to regress on the numbers."
        )
    return np.where(targets == classes[1], 1.0, -1.0)


def check_rows(x: Any, y: np.ndarray, labels: bool, owner: str) -> None:
    """Refuse features and targets that no problem can be built from; `owner` names them in the message."""
    if x.ndim != 2 or y.ndim != 1:
        raise DataError(
            f"x of {owner} has shape {x.shape} and y {y.shape}; x must be (rows, features) and y (rows,). "
            "A single feature is x.reshape(-1, 1); a column of targets is y.ravel()."
        )
    if x.shape[0] != len(y):
        raise DataError(f"x of {owner} has {x.shape[0]} rows but y has {len(y)}; each row needs exactly one target.")
    if 0 in x.shape:
        raise DataError(f"x of {owner} has shape {x.shape}; it needs at least one row and one feature.")
    if x.dtype != y.dtype or x.dtype not in (np.float32, np.float64):
        raise DataError(
            f"x of {owner} is {x.dtype} and y is {y.dtype}; both must be float32 or both float64. "
            "Table.from_arrays converts them."
        )
    if is_sparse(x):
        _check_sparse(x, owner)
    elif not x.flags.c_contiguous:
        raise DataError(f"x of {owner} is not C-contiguous; pass it through np.ascontiguousarray.")
    else:
        require_finite(x, "x")
    if not y.flags.c_contiguous:
        raise DataError(f"y of {owner} is not C-contiguous; pass it through np.ascontiguousarray.")
    require_finite(y, "y")
    if labels and not bool((np.abs(y) == 1).all()):
        wrong = y[np.abs(y) != 1][0]
        raise DataError(
            f"y of {owner} holds {wrong}, but labels must be -1 or +1. "
            "Table.from_arrays(x, y, labels=True) maps any two values to them."
        )


def _check_sparse(x: Any, owner: str) -> None:
    if x.format != "csr" or not x.has_canonical_format:
        raise DataError(
            f"x of {owner} is sparse of format {x.format}, or names a column of a row twice or not in order; it must "
            "be canonical CSR. Table.from_arrays makes it so."
        )
    bad = ~np.isfinite(x.data)
    if bad.any():
        row = int(np.searchsorted(x.indptr, np.flatnonzero(bad)[0], side="right")) - 1
        raise DataError(
            f"x holds {int(bad.sum())} value(s) that are NaN or infinite, the first in row {row}. Remove or impute "
            f"these rows; a number too large for {x.dtype} also counts as infinite."
        )


def require_finite(values: np.ndarray, name: str) -> None:
    """Refuse NaN and infinities, reading a block at a time so that no mask as large as the data is built."""
    step = max(1, CELLS_AT_ONCE // max(1, values[:1].size))
    bad, first = 0, -1
    for start in range(0, len(values), step):
        block = ~np.isfinite(values[start : start + step])
        count = int(np.count_nonzero(block))
        if count and first < 0:
            first = start + int(np.flatnonzero(block.reshape(len(block), -1).any(axis=1))[0])
        bad += count
    if bad:
        raise DataError(
            f"{name} holds {bad} value(s) that are NaN or infinite, the first in row {first}. Remove or impute these "
            f"rows; a number too large for {values.dtype} also counts as infinite."
        )


def read_array(values: object, name: str) -> Any:
    """Anything numpy can read, as an array; sparse rows of SciPy as they are."""
    if is_sparse(values):
        return values
    try:
        return np.asarray(values)
    except ValueError as problem:
        raise DataError(f"{name} is not an array: {problem}. Give every row the same length.") from problem


def _as_floats(values: np.ndarray, dtype: type[np.floating], name: str) -> np.ndarray:
    advice = "Encode text, dates and categories as numbers first."
    if values.dtype.kind not in "biufO":
        raise DataError(f"{name} has dtype {values.dtype}, which is not a number. {advice}")
    try:
        return np.ascontiguousarray(values, dtype)
    except (TypeError, ValueError) as problem:
        raise DataError(f"{name} holds something that is not a number ({problem}). {advice}") from problem


def _distinct(targets: np.ndarray) -> np.ndarray:
    try:
        return np.unique(targets)
    except TypeError as problem:
        raise DataError(f"y mixes values that cannot be compared ({problem}). Make them all of one kind.") from problem
