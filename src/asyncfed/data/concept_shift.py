"""Clients whose relation between features and target differs."""

from __future__ import annotations

import numpy as np

from asyncfed.data.column_sums import column_moments
from asyncfed.data.sparse_features import require_dense
from asyncfed.data.table import Table


def shift_response(
    table: Table, owners: np.ndarray, shifted: np.ndarray, strength: float, rng: np.random.Generator
) -> np.ndarray:
    """Targets after `y += strength * std(y) * (u_c . z)` for the rows of shifted clients.

    z is the standardised feature vector and u_c a random unit vector of client c, so that with uncorrelated features a
    strength of 1 adds as much spread as the targets have. `shifted` is a mask over clients.
    """
    require_dense(table.x, "The split concept_shift of a regression")
    means, spreads = column_moments(table.x)
    scales = np.divide(1.0, spreads, out=np.zeros_like(spreads), where=spreads > 0)
    directions = rng.standard_normal((int(shifted.sum()), table.num_features))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    rows = np.flatnonzero(shifted[owners])
    direction_of_row = (np.cumsum(shifted) - 1)[owners[rows]]
    change = np.zeros(len(rows))
    for column in range(table.num_features):
        z = (table.x[rows, column] - means[column]) * scales[column]
        change += z * directions[direction_of_row, column]
    y = table.y.copy()
    y[rows] += (strength * table.y.std(dtype=np.float64) * change).astype(y.dtype)
    return y


def flip_labels(
    table: Table, owners: np.ndarray, shifted: np.ndarray, probability: float, rng: np.random.Generator
) -> np.ndarray:
    """Labels after each one of a shifted client was flipped with this probability."""
    flips = shifted[owners] & (rng.random(table.num_rows) < probability)
    return np.where(flips, -table.y, table.y)
