"""From data to clients: who owns which row, what is held out, and (for raw tables) how rows become numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.data.clients import Clients
from asyncfed.data.federated_summary import ClientSummary, Preparation, Recipe, combine
from asyncfed.data.holdout import TRAINING, HeldOut, Holdout, Part, hold_out
from asyncfed.data.raw_table import RawTable
from asyncfed.data.splits import IID, Split
from asyncfed.data.table import Dtype, Table, float_dtype

DEFAULT_CLIENTS = 10


@dataclass(frozen=True)
class Dealing:
    """How an experiment wants its data dealt. `num_clients` None is as many as the data name, or else 10.

    `labels` says whether the model tells two classes apart.
    """

    split: Split = field(default_factory=IID)
    num_clients: int | None = None
    seed: int = 0
    dtype: Dtype = "float64"
    holdout: Holdout | None = None
    labels: bool = False

    @property
    def crowd(self) -> int:
        """How many clients a split deals to."""
        return DEFAULT_CLIENTS if self.num_clients is None else self.num_clients


@dataclass(frozen=True, eq=False)
class Dealt:
    """The clients with the rows they train on, the rows held out by part, and what there is to tell of all this."""

    clients: Clients
    held_out: Mapping[Part, HeldOut] = field(default_factory=dict)
    preparation: Preparation | None = None
    notes: tuple[str, ...] = ()


def deal_table(table: Table, how: Dealing) -> Dealt:
    """A finished table, dealt out by the split."""
    assigned = how.split.assign(table, how.crowd, how.seed)
    return _held(Clients.pack(assigned.table, assigned.client_of_row, assigned.num_clients, how.dtype), how)


def _held(clients: Clients, how: Dealing) -> Dealt:
    return Dealt(clients) if how.holdout is None else Dealt(*hold_out(clients, how.holdout, how.seed))


@dataclass(frozen=True)
class Columns:
    """What the columns of a raw table are for. `client` None: rows are dealt out by the split.

    Clients with fewer than `recipe.min_rows` rows are refused, or left out.
    """

    recipe: Recipe
    client: str | None = None
    small_clients: Literal["refuse", "leave_out"] = "refuse"


def deal_raw(raw: RawTable, columns: Columns, how: Dealing) -> Dealt:
    """A raw table: each client's training rows are summarised, and all its rows prepared with what comes of that."""
    recipe = columns.recipe
    raw.require([recipe.target], "the target")
    raw.require(recipe.features, "a feature")
    if columns.client is not None:
        raw.require([columns.client], "it says which client a row belongs to")
    if raw[recipe.target].is_category and not recipe.labels:
        classes = ", ".join(raw[recipe.target].levels[:5])
        raise DataError(
            f'The target "{recipe.target}" holds classes ({classes}), but this problem is one of regression. Use '
            "--problem logistic, svm or squared_hinge, or name another target."
        )
    kept = ~raw[recipe.target].missing
    notes = [_dropped(int((~kept).sum()), f"without a value of {recipe.target}")]
    if columns.client is None:
        rows = raw.take(np.flatnonzero(kept))
        if not rows.num_rows:
            raise DataError(f'No row has a value of the target "{recipe.target}". Name another with --target.')
        return _deal_by_split(rows, recipe, how, notes)
    owner = raw[columns.client].as_category()
    notes.append(_dropped(int((kept & owner.missing).sum()), f"without a value of {columns.client}"))
    names, owners = _owners(owner.values, owner.levels, kept & ~owner.missing, columns, notes)
    _check_named(names, columns.client, how)
    chosen = np.flatnonzero(owners >= 0)
    return _prepared(raw.take(chosen), owners[chosen], names, recipe, how, notes)


def _deal_by_split(raw: RawTable, recipe: Recipe, how: Dealing, notes: list[str]) -> Dealt:
    """The split sees rows prepared all together. If it only deals them out, they are prepared anew, by client."""
    pooled = combine([ClientSummary.of(raw, recipe)], recipe)
    table = Table(*pooled.apply(raw), recipe.labels)
    assigned = how.split.assign(table, how.crowd, how.seed)
    if assigned.table is table:
        names = tuple(map(str, range(assigned.num_clients)))
        dealt = _prepared(raw, assigned.client_of_row, names, recipe, how, notes)
        return Dealt(_nameless(dealt.clients), dealt.held_out, dealt.preparation, dealt.notes)
    clients = Clients.pack(assigned.table, assigned.client_of_row, assigned.num_clients, how.dtype)
    dealt = _held(clients, how)
    return Dealt(dealt.clients, dealt.held_out, pooled, (*filter(None, notes), *pooled.notes))


def _prepared(
    raw: RawTable, owners: np.ndarray, names: tuple[str, ...], recipe: Recipe, how: Dealing, notes: list[str]
) -> Dealt:
    order = np.argsort(owners, kind="stable")
    sizes = np.bincount(owners, minlength=len(names))
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    roles = np.zeros(len(order), np.int8) if how.holdout is None else how.holdout.roles(offsets, how.seed)
    summaries = []
    for client, name in enumerate(names):
        mine = slice(offsets[client], offsets[client + 1])
        training = order[mine][roles[mine] == TRAINING]
        if len(training) < 2:
            raise DataError(
                f'Client "{name}" has {sizes[client]} row(s), of which {len(training)} to train on; at least 2 are '
                "needed, for a summary of one row is that row. Hold out less, give it more rows, or leave such clients "
                "out with --set data.small_clients=leave_out and a larger data.min_rows."
            )
        summaries.append(ClientSummary.of(raw.take(training), recipe))
    preparation = combine(summaries, recipe)
    x = np.empty((len(order), len(preparation.feature_names)), float_dtype(how.dtype))
    y = np.empty(len(order), x.dtype)
    for client in range(len(names)):
        mine = slice(offsets[client], offsets[client + 1])
        x[mine], y[mine] = preparation.apply(raw.take(order[mine]))
    dealt = _held(Clients(x, y, offsets, recipe.labels, names), how)
    crowd = f"{len(order):,} rows at {len(names):,} clients, {x.shape[1]} features"
    told = tuple(filter(None, (crowd, *notes, *preparation.notes)))
    return Dealt(dealt.clients, dealt.held_out, preparation, told)


def _owners(
    codes: np.ndarray, levels: tuple[str, ...], kept: np.ndarray, columns: Columns, notes: list[str]
) -> tuple[tuple[str, ...], np.ndarray]:
    """The clients' names, and the client of each row; −1 for a row that nobody trains on."""
    sizes = np.bincount(codes[kept], minlength=len(levels))
    targetless = np.flatnonzero((np.bincount(codes[codes >= 0], minlength=len(levels)) > 0) & (sizes == 0))
    least = max(2, columns.recipe.min_rows)
    small = np.flatnonzero((sizes > 0) & (sizes < least))
    if columns.small_clients == "refuse":
        if len(targetless):
            raise DataError(
                f'Client "{levels[targetless[0]]}" has no row with a value of the target "{columns.recipe.target}". '
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


def _check_named(names: tuple[str, ...], column: str, how: Dealing) -> None:
    if len(names) < 2:
        raise DataError(
            f'Column "{column}" names {len(names)} client(s) with enough rows; a federation needs at least 2. Name '
            "another with --client-column, or leave it out and deal the rows to --clients."
        )
    if how.split != IID():
        raise ConfigError(
            f'split is set, but the column "{column}" says already who owns which row. Leave out one of the two.'
        )
    if how.num_clients not in (None, len(names)):
        raise ConfigError(
            f'num_clients is {how.num_clients}, but the column "{column}" names {len(names)} clients. Leave it out.'
        )


def _dropped(rows: int, what: str) -> str:
    return f"{rows:,} rows {what} left out" if rows else ""


def _nameless(clients: Clients) -> Clients:
    return Clients(clients.x, clients.y, clients.offsets, clients.labels)
