"""Standard normal numbers for noise that protects: from a key of either kind."""

from __future__ import annotations

from hashlib import shake_256

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from asyncfed.core.random import draw_key
from asyncfed.kernels.keyed_normals import keyed_normals
from asyncfed.kernels.noise_keys import is_secret, secret_bytes

DOMAIN = b"asyncfed noise"
"""Begins what is hashed, so that no other use of a key can give the same bytes."""


def noise_normals(key: int, count: int, draw: int = 0) -> NDArray[np.float64]:
    """Independent draws from N(0, 1) that depend on nothing but the key and the number of the draw.

    Simulated runs have keys of 64 bits, made from the seed: SplitMix64, which anybody who knows the seed repeats. Live
    runs have secret keys of 256 bits from the operating system: SHAKE-256 of key and draw, so that nobody without the
    key can tell the noise from any other. Both pass through the inverse of the normal distribution function, and are at
    most 8.1 in size, which a draw exceeds once in 10**15.

    Args:
        key: what a rule's `step` or an uplink's `encode` was given, of either kind; see `kernels.noise_keys`.
        count: how many numbers.
        draw: 0 or more: which of several independent vectors from one key, such as one for each node of a tree that
            begins at a version.

    >>> noise_normals(7, 3).round(3).tolist()
    [-0.28, -2.125, 1.286]
    >>> from asyncfed.kernels.noise_keys import secret_key
    >>> noise_normals(secret_key(7), 3).round(3).tolist()
    [0.412, 0.733, -2.678]

    Dworkin, "SHA-3 Standard: Permutation-Based Hash and Extendable-Output Functions", FIPS 202, 2015.
    """
    if not is_secret(key):
        return keyed_normals(key if draw == 0 else draw_key(key, 0, draw), count)
    normals: NDArray[np.float64] = ndtri(secret_uniforms(key, count, draw))
    return normals


def secret_uniforms(key: int, count: int, draw: int = 0) -> NDArray[np.float64]:
    """Numbers strictly between 0 and 1 with 52 random bits each: the upper bits of SHAKE-256's words, in order."""
    data = shake_256(DOMAIN + secret_bytes(key) + draw.to_bytes(8, "little")).digest(8 * count)
    words = np.frombuffer(data, "<u8")
    uniforms: NDArray[np.float64] = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return uniforms
