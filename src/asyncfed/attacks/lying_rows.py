"""Rows of chosen clients, and rows as liars train on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.attacks.protocol import Attack, Targets
from asyncfed.core.errors import ConfigError
from asyncfed.core.random import draw_key
from asyncfed.problems.client_rows import client_rows
from asyncfed.problems.objective import is_sparse
from asyncfed.problems.protocol import Array, PackedData, Problem, gives_rows
from asyncfed.problems.pytorch.tensor_clients import TensorClients
from asyncfed.problems.sparse_data import SparseRows, refuse_sparse


def rows_of(data: PackedData, clients: Sequence[int], names: tuple[str, ...] = ()) -> TensorClients | SparseRows:
    """The rows of these clients alone, who are then numbered 0, 1, …"""
    parts = [client_rows(data.offsets, client) for client in clients]
    offsets = np.cumsum([0, *(part.stop - part.start for part in parts)], dtype=np.int64)
    called = tuple(names[client] for client in clients) if names else ()
    if is_sparse(data.x):
        rows = np.concatenate([np.arange(part.start, part.stop) for part in parts])
        return SparseRows(data.x[rows], data.y[rows], offsets, called)
    x, y = (np.concatenate([column[part] for part in parts]) for column in (data.x, data.y))
    return TensorClients(x, y, offsets, called)


def honest_problem(problem: Problem, honest: Sequence[int]) -> Problem | None:
    """The problem of the honest clients alone, with what is held out of theirs; None if it cannot be built anew."""
    whole = gives_rows(problem)
    if whole is None:
        return None
    data = whole.clients
    held_out = {
        part: rows_of(rows, honest)
        for part, rows in whole.held_out.items()
        if sum(int(rows.offsets[client + 1] - rows.offsets[client]) for client in honest)
    }
    return whole.on_rows(rows_of(data, honest, data.names), held_out)


def targets_of(problem: Problem) -> Targets | None:
    """What the targets of its rows are; None if its rows cannot be had."""
    whole = gives_rows(problem)
    if whole is None:
        return None
    y = np.asarray(whole.clients.y)
    values = np.unique(y)
    if np.isin(values, (-1, 1)).all() and values[0] < 0:
        return Targets("labels", 2)
    classes: int | None = getattr(problem, "num_classes", None)
    if classes is not None:
        return Targets("classes", classes)
    if np.isin(values, (0, 1)).all():
        return Targets("classes", 2)
    return Targets("numbers", 0)


def poisoned_problem(problem: Problem, attack: Attack, liars: Sequence[int], secret: int) -> Problem:
    """The problem of the liars alone, on the rows that they train on; its client i is `liars[i]`."""
    whole, targets = gives_rows(problem), targets_of(problem)
    if targets is None or whole is None:
        raise ConfigError(
            f"attack: {type(attack).__name__} changes rows, and {type(problem).__name__} does not give its rows. Give "
            "the problem `clients`, `held_out` and `on_rows` (see asyncfed.problems.protocol.RebuildsOnRows), or take "
            "an attack that changes what is sent."
        )
    data = whole.clients
    refuse_sparse(data.x, f"attack: a liar of {type(attack).__name__}")
    xs: list[Array] = []
    ys: list[Array] = []
    for liar in liars:
        rows = client_rows(data.offsets, liar)
        x, y = attack.poison(data.x[rows], data.y[rows], targets, draw_key(secret, liar, 0))
        xs.append(x)
        ys.append(y)
    offsets = np.cumsum([0, *map(len, ys)], dtype=np.int64)
    return whole.on_rows(TensorClients(np.concatenate(xs), np.concatenate(ys), offsets), {})


def trigger_problem(problem: Problem, attack: Attack, honest: Sequence[int]) -> Problem | None:
    """The problem whose share of right answers says how well the attack succeeds; None if it measures nothing."""
    whole, targets = gives_rows(problem), targets_of(problem)
    if not attack.measures or targets is None or whole is None:
        return None
    data = whole.held_out.get("test", whole.clients)
    refuse_sparse(data.x, f"attack: what {type(attack).__name__} is measured by")
    rows = rows_of(data, honest)
    x, y = attack.trigger(rows.x, rows.y, targets)
    if not len(y):
        return None
    return whole.on_rows(TensorClients(x, y, np.array([0, len(y)], np.int64)), {})
