"""Fixed-point sums again, number by number in Python's exact integers: what `fixed_point.py` is tested against."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, trunc

from asyncfed.kernels.fixed_point import Rounding


def whole_multiple(value: float, fraction_bits: int, rounding: Rounding, uniform: float = 0.0) -> int:
    """`value * 2**fraction_bits`, exactly, and then rounded.

    >>> whole_multiple(0.625, 2, "nearest"), whole_multiple(0.625, 2, "stochastic", uniform=0.4)
    (2, 3)
    """
    exact = Fraction(value) * Fraction(2) ** fraction_bits
    if rounding == "nearest":
        return round(exact)
    if rounding == "toward_zero":
        return trunc(exact)
    return floor(exact) + (uniform < exact - floor(exact))


def sum_modulo(numbers: Sequence[int], bits: int) -> tuple[int, bool]:
    """The sum modulo 2**bits, from -2**(bits-1) on, and whether the true one is another.

    >>> sum_modulo([100, 50], bits=8)
    (-106, True)
    """
    exact, half = sum(numbers), 2 ** (bits - 1)
    decoded = (exact + half) % 2**bits - half
    return decoded, decoded != exact
