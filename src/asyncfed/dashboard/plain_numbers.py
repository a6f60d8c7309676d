"""Numbers as JSON can hold them: what is not finite is null, what is long is rounded."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np


def as_list(values: np.ndarray) -> list[float | int | None]:
    """The values of an array; floats with seven digits, which is more than a screen shows.

    >>> as_list(np.array([1.0, np.nan, 0.1234567891]))
    [1.0, None, 0.1234568]
    """
    if values.dtype.kind in "iu":
        return values.tolist()  # type: ignore[no-any-return]
    return [float(f"{value:.7g}") if isfinite(value) else None for value in values.tolist()]


def as_plain(value: Any) -> Any:
    """Any JSON value, with null for numbers in it that are not finite.

    >>> as_plain({"epsilon": float("inf"), "modes": ["tree", 2]})
    {'epsilon': None, 'modes': ['tree', 2]}
    """
    if isinstance(value, dict):
        return {str(name): as_plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def as_number(value: Any) -> float | None:
    """A number, or None if it is none or not finite."""
    return float(value) if value is not None and isfinite(value) else None
