"""Bulk random draws: numpy generators keyed by a seed and a purpose."""

from __future__ import annotations

import numpy as np

from asyncfed.core.random import purpose_key


def keyed(seed: int, purpose: str) -> np.random.Generator:
    """The generator of one purpose under a seed; two purposes never share a stream.

    >>> int(keyed(7, "a").integers(100)) == int(keyed(7, "a").integers(100))
    True
    """
    return np.random.Generator(np.random.Philox(key=purpose_key(seed, purpose)))
