"""The Euclidean norm of a change, and clipping to it: the same at a client and at the server."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from asyncfed.core.errors import ConfigError

LARGE = 2**14
"""Parameters from which on the memory for a change takes longer than the change itself."""


def l2_norm(vector: np.ndarray) -> float:
    """The Euclidean norm, added up in double precision, also where its square is beyond the largest float.

    >>> l2_norm(np.array([3.0, 4.0], np.float32))
    5.0
    """
    wide = vector.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        norm = float(np.sqrt(np.add.reduce(wide * wide)))
        if norm == inf or norm < 1e-150:
            scale = float(np.abs(wide).max(initial=0.0))
            if 0.0 < scale < inf:
                wide /= scale
                norm = scale * float(np.sqrt(np.add.reduce(wide * wide)))
    return norm


def change_norm(trained: np.ndarray, start: np.ndarray) -> float:
    """|trained − start|, added up in double precision; of large models without writing the change down.

    >>> change_norm(np.array([3.0, 5.0]), np.array([0.0, 1.0]))
    5.0
    """
    if trained.size >= LARGE:
        from asyncfed.kernels.square_sums import square_distance  # loads numba

        return sqrt(square_distance(trained, start))
    change = trained.astype(np.float64) - start
    return float(np.sqrt(change.dot(change)))


def copy_with_norm(source: np.ndarray, copy: np.ndarray, start: np.ndarray, page_sums: np.ndarray) -> float:
    """|model − start| of a model that is copied meanwhile, found from the copy: the source may be changing.

    Args:
        source: the model's bytes.
        copy: where they are copied to.
        start: the model it started from.
        page_sums: as many as there are whole pages of 4,096 bytes; the sums of their 64-bit words.
    """
    from asyncfed.kernels import square_sums  # loads numba

    whole, kind = len(page_sums) * 8 * square_sums.PAGE_WORDS, start.dtype
    words = source[:whole].view(np.uint64), copy[:whole].view(np.uint64)
    square = square_sums.copy_and_measure(source.view(kind), words[0], copy.view(kind), words[1], start, page_sums)
    return sqrt(square)


def square_norm(vector: np.ndarray) -> float:
    """|vector|²; of large vectors in double precision and by one thread.

    A library for linear algebra would use several, which go on waiting busily when there is nothing to do.

    >>> square_norm(np.array([3.0, 4.0]))
    25.0
    """
    if vector.size >= LARGE:
        from asyncfed.kernels import square_sums  # loads numba

        return square_sums.square_norm(vector)
    return float(vector.dot(vector))


def clip_to_norm(change: np.ndarray, limit: float) -> np.ndarray:
    """`change * min(1, limit / |change|)`: itself, if it is within the limit. Longer than it only by rounding."""
    norm = l2_norm(change)
    if norm <= limit:
        return change
    with np.errstate(invalid="ignore"):  # what is infinite becomes NaN, not something that looks sound
        clipped: np.ndarray = (change.astype(np.float64) / norm * limit).astype(change.dtype)
    return clipped


def exceeds(change: np.ndarray, limit: float) -> bool:
    """Whether it is longer than clipping to this norm can leave it, rounding included."""
    return l2_norm(change) > limit * (1.0 + 64.0 * float(np.finfo(change.dtype).eps))


def check_norm(name: str, value: float) -> None:
    """Refuse a norm that is no finite number above 0."""
    if not 0.0 < value < inf:
        raise ConfigError(f"{name} is {value}; it must be a positive number.")
