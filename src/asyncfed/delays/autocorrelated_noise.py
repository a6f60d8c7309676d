"""Noise that remembers, without a memory: a stationary AR(1) whose every value is a function of its place alone.

The usual recursion `x[k] = r * x[k-1] + sqrt(1 - r**2) * e[k]` needs all that came before. The same process can be
drawn in another order, because it is Gaussian and Markov: between two known values at distance 2d,

    x[middle] = q * (x[left] + x[right]) / (1 + q**2) + sqrt((1 - q**2) / (1 + q**2)) * e[middle],   q = r**d

whatever lies outside. So values far apart (anchors, whose correlation would be below 0.001) are drawn independently,
and a place between two of them is reached by halving: some ten keyed draws, one for each place on the way.
"""

from __future__ import annotations

from math import ceil, log, log2, sqrt
from statistics import NormalDist

from asyncfed.delays.keyed_draws import keyed_unit

FORGOTTEN = 1e-3
"""Places whose correlation would be below this are anchors, and independent."""

_normal_quantile = NormalDist().inv_cdf


def halving_weights(correlation: float) -> tuple[tuple[float, float], ...]:
    """What `autocorrelated_normal` needs of a process whose neighbours have this correlation, 0 <= correlation < 1.

    Returns:
        For distances 2**(levels-1), ..., 2, 1 from a middle to its ends: the weight of the ends' sum, and that of the
        middle's own draw. Anchors are 2**levels apart.

    >>> halving_weights(0.0), len(halving_weights(0.5)), len(halving_weights(0.99))
    ((), 4, 10)
    """
    if correlation <= 0.0:
        return ()
    levels = max(0, ceil(log2(log(FORGOTTEN) / log(correlation))))
    weights = []
    for level in reversed(range(levels)):
        q = correlation ** (2.0**level)
        weights.append((q / (1.0 + q * q), sqrt((1.0 - q * q) / (1.0 + q * q))))
    return tuple(weights)


def autocorrelated_normal(purpose: int, client: int, place: int, weights: tuple[tuple[float, float], ...]) -> float:
    """The value at this place of the client's process: normal with mean 0 and variance 1.

    Args:
        purpose: the key of the draws.
        client: whose process it is; those of different clients are independent.
        place: 0 or more.
        weights: those of the correlation of neighbouring places, from `halving_weights`.

    >>> from asyncfed.core.random import purpose_key
    >>> key, weights = purpose_key(0, "example"), halving_weights(0.9)
    >>> [round(autocorrelated_normal(key, 0, place, weights), 2) for place in (9, 8, 9)]
    [-1.22, -0.42, -1.22]
    """
    step = 1 << len(weights)
    left = place & -step
    at_left = _normal_quantile(keyed_unit(purpose, client, left))
    if left == place:
        return at_left
    at_right = _normal_quantile(keyed_unit(purpose, client, left + step))
    for of_ends, of_own in weights:
        step >>= 1
        middle = left + step
        value = of_ends * (at_left + at_right) + of_own * _normal_quantile(keyed_unit(purpose, client, middle))
        if middle == place:
            return value
        if middle < place:
            left, at_left = middle, value
        else:
            at_right = value
    raise AssertionError("every place is the middle of one interval")
