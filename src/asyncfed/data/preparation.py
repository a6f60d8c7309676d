"""From data to clients: which client owns which row, what is held out, and (of raw tables) how rows become numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.data.clients import Clients
from asyncfed.data.data_source import DataRequest, PreparedData
from asyncfed.data.federated_summary import ClientSummary, Preparation, TableSchema, merge_summaries
from asyncfed.data.holdout import ROLES, TEST, TRAINING, VALIDATION, HeldOut, Part, hold_out
from asyncfed.data.raw_table import RawTable
from asyncfed.data.sparse_features import as_csr, stack
from asyncfed.data.split_protocol import Assignment
from asyncfed.data.splits import IID
from asyncfed.data.table import CELLS_AT_ONCE, Table, float_dtype
from asyncfed.data.table_diagnosis import diagnose


def prepare_table(table: Table, request: DataRequest) -> PreparedData:
    """The clients of a finished table, its rows assigned by the split, and what is held out.

    Args:
        table: the rows as numbers.
        request: what the experiment wants: split, clients, seed, dtype and hold-out.

    Returns:
        The prepared data.
    """
    assigned = request.split.assign(table, request.split_clients, request.seed)
    return _pack(assigned, request)


def _pack(assigned: Assignment, request: DataRequest) -> PreparedData:
    """The clients of an assignment, their held-out rows drawn now."""
    clients = Clients.pack(assigned.table, assigned.client_of_row, assigned.num_clients, request.dtype)
    if request.holdout is None:
        return PreparedData(clients)
    return PreparedData(*hold_out(clients, request.holdout.roles(clients.offsets, request.seed)))


@dataclass(frozen=True)
class ColumnRoles:
    """What the columns of a raw table are for.

    Args:
        schema: target, features, and how to treat them.
        client: the column that names the owner of a row; None: the split assigns rows.
        small_clients: "refuse" or "leave_out" clients with fewer than `schema.min_rows` rows.
        sparse: True prepares rows as a SciPy CSR array, for tables with categories of many levels.
    """

    schema: TableSchema
    client: str | None = None
    small_clients: Literal["refuse", "leave_out"] = "refuse"
    sparse: bool = False


def prepare_raw_table(raw: RawTable, columns: ColumnRoles, request: DataRequest) -> PreparedData:
    """The clients of a raw table: their training rows are summarised, all their rows prepared with the result.

    Args:
        raw: the columns.
        columns: what they are for.
        request: what the experiment wants: split, clients, seed, dtype and hold-out.

    Returns:
        The prepared data.
    """
    schema = columns.schema
    raw.require([schema.target], "the target")
    raw.require(schema.features, "a feature")
    if columns.client is not None:
        raw.require([columns.client], "it says which client a row belongs to")
    if raw[schema.target].is_category and not schema.has_classes:
        classes = ", ".join(raw[schema.target].levels[:5])
        raise DataError(
            f'The target "{schema.target}" holds classes ({classes}), but this problem is a regression. Use '
            "--problem logistic, svm or squared_hinge, or name another target."
        )
    kept = ~raw[schema.target].missing
    notes = [*raw.notes, *diagnose(raw, schema), _dropped(int((~kept).sum()), f"without a value of {schema.target}")]
    if columns.client is None:
        rows = raw if kept.all() else raw.take(np.flatnonzero(kept))
        if not rows.num_rows:
            raise DataError(f'No row has a value of the target "{schema.target}". Name another with --target.')
        return _prepare_by_split(rows, columns, request, notes)
    owner = raw[columns.client].as_category()
    notes.append(_dropped(int((kept & owner.missing).sum()), f"without a value of {columns.client}"))
    names, owners = _owners(owner.values, owner.levels, kept & ~owner.missing, columns, notes)
    _check_named(names, columns.client, request)
    return _prepare_by_client(raw, owners, names, columns, request, notes)


def _prepare_by_split(raw: RawTable, columns: ColumnRoles, request: DataRequest, notes: list[str]) -> PreparedData:
    """The split sees rows prepared all together; if it changes no data, they are prepared again, by client."""
    schema = columns.schema
    pooled = merge_summaries([ClientSummary.of(raw, schema)], schema)
    if columns.sparse:
        every = np.arange(raw.num_rows), np.array([0]), np.array([raw.num_rows])
        table = Table(*_apply_sparse(pooled, raw, *every, np.dtype(np.float64))[:2], schema.labels)
    else:
        table = Table(*pooled.apply(raw), schema.labels)
    assigned = request.split.assign(table, request.split_clients, request.seed)
    if assigned.table is not table:
        prepared = _pack(assigned, request)
        return PreparedData(prepared.clients, prepared.held_out, pooled, (*filter(None, notes), *pooled.notes))
    owners, num_clients = assigned.client_of_row, assigned.num_clients
    del table, assigned  # as large as what is prepared next
    prepared = _prepare_by_client(raw, owners, tuple(map(str, range(num_clients))), columns, request, notes)
    return PreparedData(_nameless(prepared.clients), prepared.held_out, prepared.preparation, prepared.notes)


def _prepare_by_client(
    raw: RawTable,
    owners: np.ndarray,
    names: tuple[str, ...],
    columns: ColumnRoles,
    request: DataRequest,
    notes: list[str],
) -> PreparedData:
    """Each client's rows are taken from the table to be summarised, and again to be prepared: all are never copied."""
    schema = columns.schema
    used = np.flatnonzero(owners >= 0)
    rows = used[np.argsort(owners[used], kind="stable")]
    sizes = np.bincount(owners[used], minlength=len(names))
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    roles = np.zeros(len(rows), np.int8) if request.holdout is None else request.holdout.roles(offsets, request.seed)
    groups = 3 * np.repeat(np.arange(len(names)), sizes) + roles
    ends = np.cumsum(np.bincount(groups, minlength=3 * len(names))).reshape(-1, 3)
    starts = ends - np.bincount(groups, minlength=3 * len(names)).reshape(-1, 3)
    wanted = raw.only((*schema.features, schema.target))
    ordered = rows[np.argsort(groups, kind="stable")]
    summaries = []
    for client, name in enumerate(names):
        mine = ordered[starts[client, TRAINING] : ends[client, TRAINING]]
        if len(mine) < 2:
            raise DataError(
                f'Client "{name}" has {sizes[client]} row(s), of which {len(mine)} to train on; at least 2 are '
                "needed, for a summary of one row is that row. Hold out less, give it more rows, or leave such clients "
                "out with --set data.small_clients=leave_out and a larger data.min_rows."
            )
        summaries.append(ClientSummary.of(wanted.take(mine), schema))
    preparation = merge_summaries(summaries, schema)
    apply: Callable[..., tuple[Any, np.ndarray, np.ndarray]] = _apply_sparse if columns.sparse else _apply
    parts = {
        role: apply(preparation, wanted, ordered, starts[:, role], ends[:, role], float_dtype(request.dtype))
        for role in (TRAINING, VALIDATION, TEST)
    }
    held_out: dict[Part, HeldOut] = {part: HeldOut(*parts[role]) for part, role in ROLES.items() if len(parts[role][1])}
    kept = (
        f", sparse: {parts[TRAINING][0].nnz / len(parts[TRAINING][1]):.0f} of them in a row" if columns.sparse else ""
    )
    size = f"{len(rows):,} rows at {len(names):,} clients, {len(preparation.feature_names)} features{kept}"
    all_notes = tuple(filter(None, (size, *notes, *preparation.notes)))
    return PreparedData(Clients(*parts[TRAINING], schema.labels, names), held_out, preparation, all_notes)


def _apply(
    preparation: Preparation, raw: RawTable, rows: np.ndarray, starts: np.ndarray, ends: np.ndarray, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, targets and offsets of one part: client c has the rows `rows[starts[c] : ends[c]]` of the table."""
    offsets = np.concatenate(([0], np.cumsum(ends - starts))).astype(np.int64)
    x = np.empty((int(offsets[-1]), len(preparation.feature_names)), dtype)
    y = np.empty(len(x), dtype)
    for client, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        place = slice(offsets[client], offsets[client + 1])
        preparation.apply_into(raw.take(rows[start:end]), x[place], y[place])
    return x, y, offsets


def _apply_sparse(
    preparation: Preparation, raw: RawTable, rows: np.ndarray, starts: np.ndarray, ends: np.ndarray, dtype: np.dtype
) -> tuple[Any, np.ndarray, np.ndarray]:
    """The same with features as a CSR array; no more than a block of rows is an array at any time."""
    offsets = np.concatenate(([0], np.cumsum(ends - starts))).astype(np.int64)
    width = len(preparation.feature_names)
    y, parts = np.empty(int(offsets[-1]), dtype), [as_csr(np.empty((0, width)), dtype, "x")]
    at_once = max(1, CELLS_AT_ONCE // max(1, width))
    for client, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        for first in range(start, end, at_once):
            last = min(first + at_once, end)
            block, place = np.empty((last - first, width), dtype), int(offsets[client]) + first - start
            preparation.apply_into(raw.take(rows[first:last]), block, y[place : place + last - first])
            parts.append(as_csr(block, dtype, "x"))
    return as_csr(stack(parts), dtype, "x"), y, offsets


def _owners(
    codes: np.ndarray, levels: tuple[str, ...], kept: np.ndarray, columns: ColumnRoles, notes: list[str]
) -> tuple[tuple[str, ...], np.ndarray]:
    """The clients' names, and the client of each row; −1 for a row that no client trains on."""
    sizes = np.bincount(codes[kept], minlength=len(levels))
    targetless = np.flatnonzero((np.bincount(codes[codes >= 0], minlength=len(levels)) > 0) & (sizes == 0))
    least = max(2, columns.schema.min_rows)
    small = np.flatnonzero((sizes > 0) & (sizes < least))
    if columns.small_clients == "refuse":
        if len(targetless):
            raise DataError(
                f'Client "{levels[targetless[0]]}" has no row with a value of the target "{columns.schema.target}". '
                "Take its rows out, or leave such clients out with --set data.small_clients=leave_out."
            )
        if len(small):
            raise DataError(
                f'Client "{levels[small[0]]}" has {sizes[small[0]]} row(s) with a target, and so have {len(small) - 1} '
                f"other clients fewer than {least}. Leave them out with --set data.small_clients=leave_out, or join "
                "them to other clients."
            )
    elif len(small) + len(targetless):
        few = len(small) + len(targetless)
        notes.append(f"{few} clients with fewer than {least} rows left out ({int(sizes[small].sum())} rows)")
    big = np.flatnonzero(sizes >= least)
    client_of_level = np.full(len(levels) + 1, -1, np.int64)  # the last is that of no level
    client_of_level[big] = np.arange(len(big))
    return tuple(levels[code] for code in big), np.where(kept, client_of_level[codes], -1)


def _check_named(names: tuple[str, ...], column: str, request: DataRequest) -> None:
    if len(names) < 2:
        raise DataError(
            f'Column "{column}" names {len(names)} client(s) with enough rows; a federation needs at least 2. Name '
            "another with --client-column, or leave it out and say how many clients there are with --num-clients."
        )
    if request.split != IID():
        raise ConfigError(
            f'split is set, but the column "{column}" names the owner of each row already. Leave out one of the two.'
        )
    if request.num_clients not in (None, len(names)):
        raise ConfigError(
            f'num_clients is {request.num_clients}, but the column "{column}" names {len(names)} clients. Leave it out.'
        )


def _dropped(rows: int, what: str) -> str:
    return f"{rows:,} rows {what} left out" if rows else ""


def _nameless(clients: Clients) -> Clients:
    return Clients(clients.x, clients.y, clients.offsets, clients.labels)
