"""A number that shrinks by itself and is fed by its own past: the sequence lemma behind P and M."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from asyncfed.theory.bounds.arguments import Curve, as_curve, count, number, whole


def delayed_sequence_rate(*, own_weight: float, delayed_weight: float, window: int) -> float:
    """ρ = (p + q)^(1/(1+h)). p, q ≥ 0 with p + q < 1; h ≥ 0.

    >>> delayed_sequence_rate(own_weight=0.5, delayed_weight=0.31, window=1)
    0.9

    Returns:
        The value of the formula.
    """
    own = number("own_weight", own_weight, at_least=0)
    delayed = number("delayed_weight", delayed_weight, at_least=0)
    total = number("own_weight + delayed_weight", own + delayed, below=1, advice="Only a sum below 1 contracts.")
    return float(total ** (1 / (1 + count("window", window))))


def delayed_sequence_bound(
    *, own_weight: float, delayed_weight: float, offset: float, window: int, start: float, index: ArrayLike
) -> Curve:
    """V_{t+1} ≤ p V_t + q max_{[t−h, t]} V + r with p + q < 1 implies V_t ≤ ρ^t V_0 + r/(1−p−q), ρ = (p+q)^(1/(1+h)).

    Feyzmahdavian, Aytekin and Johansson 2014. Proof by induction: p ρ^t + q ρ^(t−h) ≤ (p+q) ρ^(t−h) = ρ^(t+1).
    p `own_weight`, q `delayed_weight` ≥ 0, p + q < 1; r `offset` ≥ 0; h `window` ≥ 0; V_0 `start` ≥ 0; t `index` ≥ 0.

    >>> delayed_sequence_bound(own_weight=0.5, delayed_weight=0.25, offset=1, window=1, start=8, index=4)
    8.5

    Returns:
        The value of the formula: a number, or an array where an argument was one.
    """
    rate = delayed_sequence_rate(own_weight=own_weight, delayed_weight=delayed_weight, window=window)
    floor = number("offset", offset, at_least=0) / (1 - own_weight - delayed_weight)
    return as_curve(np.power(rate, whole("index", index)) * number("start", start, at_least=0) + floor)
