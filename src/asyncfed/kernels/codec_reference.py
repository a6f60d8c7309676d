"""The compiled loops of codecs, written slowly and readably; tests compare the two bit for bit."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.random import Stream


def largest_entries(vector: NDArray[Any], count: int) -> list[int]:
    """Sort all by size, NaN first, then by index; take the first."""
    whole = np.uint32 if vector.dtype == np.float32 else np.uint64
    sizes = np.abs(vector).view(whole).tolist()
    return sorted(sorted(range(vector.size), key=lambda i: (-sizes[i], i))[:count])


def index_bits(indices: list[int], low: int, num_bytes: int) -> bytes:
    """The low bits of all indices, then a one at place `high + number` for each."""
    bits = [index >> bit & 1 for index in indices for bit in range(low)]
    ones = {(index >> low) + number for number, index in enumerate(indices)}
    bits += [int(place in ones) for place in range(8 * num_bytes - len(bits))]
    return pack_bits(bits)


def random_subset(key: int, n: int, count: int) -> list[int]:
    """Floyd: for j = n - count … n - 1 draw from 0 … j; what is there already gives way to j."""
    chosen, stream = set[int](), Stream(key)
    for j in range(n - count, n):
        drawn = stream.below(j + 1)
        chosen.add(j if drawn in chosen else drawn)
    return sorted(chosen)


def bucket_norms(vector: NDArray[Any], bucket: int) -> list[float]:
    """The root of the sum of squares; divided by the largest first, where squares leave the range of floats."""
    norms = []
    for values in _buckets(vector, bucket):
        total = _sum_of_squares(values)
        largest = max(map(abs, values))
        if np.isnan(total) or 1e-280 <= total < np.inf or largest in (0.0, np.inf):
            norms.append(sqrt(total))
        else:
            norms.append(largest * sqrt(_sum_of_squares([value / largest for value in values])))
    return norms


def bucket_mean_sizes(vector: NDArray[Any], bucket: int) -> list[float]:
    """The sum of sizes over their number."""
    means = []
    for values in _buckets(vector, bucket):
        total = 0.0
        for value in values:
            total += abs(value)
        means.append(total / len(values))
    return means


def level_bits(vector: NDArray[Any], scales: NDArray[Any], bucket: int, levels: int, bits: int, key: int) -> bytes:
    """One code after another: `levels` plus the signed level of the entry."""
    stream, packed = Stream(key), []
    for scale, values in zip(scales.tolist(), _buckets(vector, bucket), strict=True):
        for value in values:
            chance = (stream.bits() >> 12) * 2.0**-52
            level = min(int(abs(value) / scale * levels + chance), levels) if 0.0 < scale < np.inf else 0
            code = levels + (level if value > 0 else -level)
            packed += [code >> bit & 1 for bit in range(bits)]
    return pack_bits(packed)


def levels_of_bits(packed: bytes, scales: NDArray[Any], bucket: int, levels: int, bits: int, size: int) -> list[float]:
    """The inverse of `level_bits`."""
    bit_at = [byte >> bit & 1 for byte in packed for bit in range(8)]
    codes = [sum(bit_at[bits * i + bit] << bit for bit in range(bits)) for i in range(size)]
    return [float(scales[i // bucket]) * ((code - levels) / levels) for i, code in enumerate(codes)]


def pack_bits(bits: list[int]) -> bytes:
    """Eight bits a byte, the first one the lowest; the last byte is filled with zeros."""
    rows = [bits[at : at + 8] for at in range(0, len(bits), 8)]
    return bytes(sum(bit << place for place, bit in enumerate(row)) for row in rows)


def _buckets(vector: NDArray[Any], bucket: int) -> list[list[float]]:
    return [vector[at : at + bucket].tolist() for at in range(0, vector.size, bucket)]


def _sum_of_squares(values: list[float]) -> float:
    total = 0.0
    for value in values:
        total += value * value
    return total


def low_rank_factors(
    matrix: NDArray[Any], right: NDArray[np.float64], iterations: int, dependent: float
) -> tuple[list[list[float]], list[list[float]]]:
    """Multiply by the matrix, orthonormalise, multiply by its transpose; both as lists of columns."""
    rows = matrix.astype(np.float64).tolist()
    columns = [list(column) for column in zip(*rows, strict=True)]
    right_columns = right.T.tolist()
    left_columns: list[list[float]] = []
    for _ in range(iterations):
        left_columns = []
        for column in right_columns:
            image = [_dot(row, column) for row in rows]
            before = _dot(image, image)
            for basis in 2 * left_columns:
                along = _dot(basis, image)
                image = [value - along * part for value, part in zip(image, basis, strict=True)]
            rest = _dot(image, image)
            scale = 1.0 / sqrt(rest) if rest > dependent * dependent * before else 0.0
            left_columns.append([value * scale for value in image])
        right_columns = [[_dot(column, basis) for column in columns] for basis in left_columns]
    return left_columns, right_columns


def _dot(a: list[float], b: list[float]) -> float:
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total
