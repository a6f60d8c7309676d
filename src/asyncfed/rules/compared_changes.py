"""The changes of a merge side by side, for an aggregator: all of them at once, or a range of coordinates at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.types import Merge
from asyncfed.kernels.merge_workspace import merge_threads, merge_workspace
from asyncfed.rules.aggregators.average import weighted_mean
from asyncfed.rules.aggregators.protocol import CoordinateWise
from asyncfed.rules.protocol import Arrival

CHUNK = 32_768
"""Coordinates in a range: those of ten updates then stay in the cache from being made to being compared."""


def stack_changes(
    params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge
) -> tuple[np.ndarray, Sequence[Arrival]]:
    """One row for each arrival all of whose numbers are finite: its change, or its model less the present one; and the
    arrivals that have a row. The rows are valid until the next merge."""
    from asyncfed.kernels.merging import subtract  # loads numba
    from asyncfed.kernels.threads import run_split

    workspace, origins = merge_workspace(), _origins(params, arrivals, merge)
    rows, sound = workspace.room((len(arrivals), params.size), params.dtype), [False] * len(arrivals)

    def run(first: int, last: int) -> None:
        for place in range(first, last):
            sound[place] = bool(subtract(arrivals[place].model, origins[place], rows[place]))

    run_split(run, np.full(len(arrivals), params.size), workspace.threads)
    if all(sound):
        return rows, arrivals
    return rows[sound], [arrival for arrival, is_sound in zip(arrivals, sound, strict=True) if is_sound]


def aggregate_by_chunks(
    aggregator: CoordinateWise, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, weights: np.ndarray
) -> np.ndarray | None:
    """The aggregate of the rows of `stack_changes`, to the last bit, but nothing as large as all of them is written and
    read again. None if there is a number that is not finite."""
    from asyncfed.kernels.merging import subtract  # loads numba
    from asyncfed.kernels.threads import run_split

    count, size, origins = len(arrivals), params.size, _origins(params, arrivals, merge)
    tickets = np.array([arrival.ticket for arrival in arrivals])
    vector, endless = np.empty_like(params), []

    def run(first: int, last: int) -> None:
        room = np.empty(count * CHUNK, params.dtype)
        for begin in range(first * CHUNK, min(size, last * CHUNK), CHUNK):
            here = slice(begin, min(size, begin + CHUNK))
            rows = room[: count * (here.stop - begin)].reshape(count, -1)
            for place, arrival in enumerate(arrivals):
                if not subtract(arrival.model[here], origins[place][here], rows[place]):
                    endless.append(place)
                    return
            vector[here] = aggregator.aggregate(rows, weights, {}, tickets)[0].vector

    run_split(run, np.full(-(-size // CHUNK), CHUNK * count * 4), merge_threads())
    return None if endless else vector


def _origins(params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge) -> list[np.ndarray]:
    return [arrival.start if merge.of == "delta" else params for arrival in arrivals]


def join_by_client(
    vectors: np.ndarray, weights: np.ndarray, clients: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One row for each client, the weighted mean of its vectors, in the order in which they first come; what each
    counts of the whole, as its vectors do on average; and the row of each vector."""
    numbers = {client: row for row, client in enumerate(dict.fromkeys(clients))}
    row_of = np.array([numbers[client] for client in clients], np.int64)
    rows, shares = np.empty((len(numbers), vectors.shape[1]), vectors.dtype), np.empty(len(numbers))
    for row in range(len(numbers)):
        own = row_of == row
        total = float(weights[own].sum())
        parts = weights[own] / total if total else np.full(int(own.sum()), 1.0 / int(own.sum()))
        rows[row] = weighted_mean(vectors[own], parts)
        shares[row] = total / int(own.sum())
    return rows, shares / shares.sum() if shares.any() else np.full(len(numbers), 1.0 / max(1, len(numbers))), row_of
