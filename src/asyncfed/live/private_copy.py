"""A copy of what a client placed in shared memory, which the client can still change: nobody looks at the original.

All that the server has to know of a model, how far it is from where it started and the check sum of its bytes, is found
in the pass that makes the copy, from the copy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from asyncfed.kernels.recycled_memory import MemorySource, empty
from asyncfed.store.page_sums import PAGE_WORDS, combine_sums
from asyncfed.uplinks.norms import copy_with_norm

BYTES = np.dtype(np.uint8)


class Measured(NamedTuple):
    """What was found of a model while it was copied.

    Args:
        norm: |model - start|, as `uplinks.norms.change_norm` has it.
        check_sum: of its bytes, as `store.page_sums` has it.
    """

    norm: float
    check_sum: int


def copy_bytes(shared: np.ndarray, source: MemorySource | None) -> np.ndarray:
    """The bytes as they are now, in memory of this source."""
    body = empty(shared.size, BYTES, source)
    np.copyto(body, shared)
    return body


def copy_model(shared: np.ndarray, start: np.ndarray, source: MemorySource | None) -> tuple[np.ndarray, Measured]:
    """The same of a model that started from `start`: the bytes of its numbers, and what was found of it."""
    body = empty(shared.size, BYTES, source)
    sums = np.empty(shared.size // (8 * PAGE_WORDS), np.uint64)
    norm = copy_with_norm(shared, body, start, sums)
    return body, Measured(norm, combine_sums(sums, body.data))
