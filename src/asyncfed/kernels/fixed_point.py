"""Numbers as whole multiples of a power of two, and sums modulo another: the arithmetic of secure aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rounding: TypeAlias = Literal["nearest", "stochastic", "toward_zero"]
Floats: TypeAlias = NDArray[np.float64]

MOST_BITS = 62
"""Of a modulus: both signs of what is decoded fit into 64 bits."""


def whole_multiples(values: Floats, fraction_bits: int, rounding: Rounding, uniforms: Floats | float = 0.5) -> Floats:
    """`values * 2**fraction_bits`, rounded to whole numbers.

    Args:
        values: finite.
        fraction_bits: f; the multiples are of 2**-f.
        rounding: "nearest" (halves to the even one), "toward_zero", or "stochastic": up with the probability of what is
            cut off, so that the mean is right.
        uniforms: for "stochastic", as many numbers from 0 to 1.

    >>> whole_multiples(np.array([0.3, -0.3]), 2, "toward_zero").tolist()
    [1.0, -1.0]
    """
    scaled: Floats = np.ldexp(values, fraction_bits)
    if rounding == "nearest":
        return np.rint(scaled)
    if rounding == "toward_zero":
        return np.trunc(scaled)
    below: Floats = np.floor(scaled)
    above: Floats = below + (scaled - below > uniforms)
    return above


def sum_modulo(wholes: Sequence[Floats], size: int, bits: int) -> NDArray[np.int64]:
    """The sum of vectors of whole numbers modulo 2**bits, read as numbers from -2**(bits-1) to 2**(bits-1) - 1.

    Args:
        wholes: vectors of that size, of whole numbers of any magnitude; with none of them, zeros.
        size: of the vectors.
        bits: 1 to 62.

    >>> sum_modulo([np.array([100.0, 3.0]), np.array([50.0, -4.0])], size=2, bits=8).tolist()
    [-106, -1]
    """
    total = np.zeros(size, np.uint64)
    for whole in wholes:  # words of 64 bits wrap around modulo 2**64, of which 2**bits is a divisor
        total += np.fmod(whole, 2.0**bits).astype(np.int64).astype(np.uint64)
    total &= np.uint64((1 << bits) - 1)
    signed = total.astype(np.int64)
    signed[signed >= 1 << (bits - 1)] -= 1 << bits
    return signed


def count_wrapped(wholes: Sequence[Floats], decoded: NDArray[np.int64], bits: int) -> int:
    """In how many places the sum was beyond what the modulus can hold.

    A sum that wraps around is off by a multiple of 2**bits, which no rounding of the sum in double precision can hide.

    >>> first, second = np.array([100.0, 3.0]), np.array([50.0, -4.0])
    >>> count_wrapped([first, second], sum_modulo([first, second], 2, 8), 8)
    1
    """
    exact = sum(wholes, np.zeros(decoded.size))
    return int(np.count_nonzero(np.abs(exact - decoded) > 2.0 ** (bits - 1)))
