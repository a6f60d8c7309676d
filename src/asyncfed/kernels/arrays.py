"""Arrays as the compiled loops want them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def plain(array: NDArray[Any]) -> NDArray[Any]:
    """Contiguous and writable, copied only if it is not: for a read-only array a loop would be compiled once more."""
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else array.copy()
