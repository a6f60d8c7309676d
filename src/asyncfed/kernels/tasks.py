"""What the training kernel has to do, in arrays. Nothing here is compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

Array = NDArray[Any]


class Tasks(NamedTuple):
    """k tasks: `clients` (k,) int64, `keys` (k,) uint64, and `work` (k, 5) float64.

    The columns of `work` are epochs, batch size, learning rate, decay and proximal term. There may be a sixth,
    patience: the epochs in a row without a lower loss after which training ends; 0 for no such end. And a seventh,
    steps: make exactly so many mini-batch steps, whatever the epochs; 0 for whole epochs.
    """

    clients: Array
    keys: Array
    work: Array
