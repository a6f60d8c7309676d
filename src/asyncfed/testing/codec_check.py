"""Whether a codec's messages are as near to the change, and as unbiased, as it says."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from asyncfed.core.random import Stream, draw_key
from asyncfed.uplinks.codec import Codec

DRAWS = 200
"""Messages of the same change, each with a key of its own."""

DEVIATIONS = 5.0
"""So many standard errors a mean may be off."""

ROUNDING = 1e-9
"""So large a share of |v|² is left to rounding."""


def check_constants(codec: Codec, size: int, key: int) -> None:
    """AssertionError if drawn messages contradict the codec's `contraction` or `variance`."""
    contraction, variance = codec.contraction(size), codec.variance(size)
    assert contraction is None or 0.0 < contraction <= 1.0, f"contraction is {contraction}; it must be in (0, 1]."
    assert variance is None or variance >= 0.0, f"variance is {variance}; it must be 0 or more."
    for number, (name, vector) in enumerate(_vectors(size, Stream(key))):
        total = float(vector @ vector)
        decoded = np.array([_through(codec, vector, draw_key(key, number + 1, draw)) for draw in range(DRAWS)])
        errors = ((decoded - vector) ** 2).sum(axis=1) / total
        mean, spread = float(errors.mean()), float(errors.std()) / DRAWS**0.5
        least = mean - DEVIATIONS * spread - ROUNDING
        if contraction is not None:
            assert least <= 1.0 - contraction, (
                f"{name}: |C(v) - v|² is {mean:.4g} |v|² in the mean of {DRAWS} draws; contraction says at most "
                f"{1.0 - contraction:.4g}."
            )
        if variance is not None:
            assert least <= variance, (
                f"{name}: |C(v) - v|² is {mean:.4g} |v|² in the mean of {DRAWS} draws; variance says at most "
                f"{variance:.4g}."
            )
            bias = float(((decoded.mean(axis=0) - vector) ** 2).sum()) / total
            assert bias <= DEVIATIONS**2 * mean / DRAWS + ROUNDING, (
                f"{name}: the mean of {DRAWS} draws is {bias**0.5:.4g} |v| from v; variance says that it is unbiased."
            )


def _through(codec: Codec, vector: np.ndarray, key: int) -> np.ndarray:
    message, _ = codec.encode({}, vector, key)
    assert message is not None, "a codec with constants sends nothing; it must answer every change."
    decoded: np.ndarray = codec.decode(message, vector.size, vector.dtype)
    return decoded


def _vectors(size: int, chance: Stream) -> Iterator[tuple[str, np.ndarray]]:
    """Those for which codecs are known to be worst: all of the same size, a single entry, sizes that fall off."""
    signs = np.array([1.0 if chance.below(2) else -1.0 for _ in range(size)])
    yield "entries of equal size", signs
    single = np.zeros(size)
    single[chance.below(size)] = -3.0
    yield "a single entry", single
    yield "sizes that fall off", signs * 0.9 ** np.arange(size)
    yield "uniform entries", np.array([chance.unit() - 0.5 for _ in range(size)])
