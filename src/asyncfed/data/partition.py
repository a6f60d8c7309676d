"""Assigning rows to clients: evenly, or by Dirichlet shares within bins, with a smallest size for each client."""

from __future__ import annotations

import numpy as np


def even_sizes(num_rows: int, num_clients: int) -> np.ndarray:
    """Sizes that differ by at most one, larger ones first.

    >>> even_sizes(7, 3)
    array([3, 2, 2])
    """
    return num_rows // num_clients + (np.arange(num_clients) < num_rows % num_clients)


def block_owners(sizes: np.ndarray) -> np.ndarray:
    """Owners of consecutive blocks of rows: client 0 the first `sizes[0]`, and so on.

    >>> block_owners(np.array([2, 0, 1]))
    array([0, 0, 2], dtype=int32)
    """
    return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)


def assign_evenly(num_rows: int, num_clients: int, rng: np.random.Generator) -> np.ndarray:
    """Owners drawn at random, sizes as equal as possible."""
    return rng.permutation(block_owners(even_sizes(num_rows, num_clients)))


def quantile_bins(values: np.ndarray, bins: int) -> np.ndarray:
    """The quantile bin of each value: `floor(bins * (rows below + half the rows equal) / n)`.

    Equal values share a bin, and values that are not all equal fill at least two, however many ties there are.

    >>> quantile_bins(np.array([5.0, 1.0, 1.0, 1.0]), bins=2)
    array([1, 0, 0, 0])
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    twice_middle = 2 * np.cumsum(counts) - counts
    return (bins * twice_middle // (2 * len(values)))[inverse.ravel()]


def assign_by_dirichlet(
    bin_of_row: np.ndarray, num_clients: int, concentration: float, min_size: int, rng: np.random.Generator
) -> np.ndarray:
    """Owners when each bin's rows, in random order, are cut by one draw of `Dirichlet(concentration, ...)`.

    Small concentrations give a bin to few clients; large ones share it evenly. Clients left with fewer than `min_size`
    rows are topped up.
    """
    shuffled = rng.permutation(len(bin_of_row))
    by_bin = shuffled[np.argsort(bin_of_row[shuffled], kind="stable")]
    owners = np.empty(len(bin_of_row), np.int32)
    start = 0
    for count in np.bincount(bin_of_row):
        shares = rng.dirichlet(np.full(num_clients, concentration))
        cuts = np.minimum(np.rint(np.cumsum(shares) * count), count).astype(np.int64)
        cuts[-1] = count
        owners[by_bin[start : start + count]] = block_owners(np.diff(cuts, prepend=0))
        start += count
    return top_up(owners, num_clients, min_size, rng)


def top_up(owners: np.ndarray, num_clients: int, min_size: int, rng: np.random.Generator) -> np.ndarray:
    """Owners after random rows of the largest clients moved to those below `min_size`. Needs enough rows for all."""
    sizes = np.bincount(owners, minlength=num_clients)
    missing = np.maximum(min_size - sizes, 0)
    if not missing.any():
        return owners
    moved = rows_to_move(sizes, min_size, int(missing.sum()))
    shuffled = rng.permutation(len(owners))
    by_client = shuffled[np.argsort(owners[shuffled], kind="stable")]
    place_in_client = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    moving = by_client[place_in_client < np.repeat(moved, sizes)]
    topped = owners.copy()
    topped[rng.permutation(moving)] = block_owners(missing)
    return topped


def rows_to_move(sizes: np.ndarray, floor: int, need: int) -> np.ndarray:
    """How many rows each client gives up so that `need` are found, the largest clients first.

    >>> rows_to_move(np.array([9, 4, 8, 0]), floor=2, need=3)
    array([2, 0, 1, 0])
    """
    low, high = floor, int(sizes.max())
    while low < high:
        level = (low + high + 1) // 2
        if int(np.maximum(sizes - level, 0).sum()) >= need:
            low = level
        else:
            high = level - 1
    rows: np.ndarray = np.maximum(sizes - low, 0)
    too_many = int(rows.sum()) - need
    rows[np.flatnonzero(rows)[:too_many]] -= 1
    return rows
