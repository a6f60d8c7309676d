"""Rows to measure a module on and never to train it with. Plain arrays; nothing here needs torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from asyncfed.core.errors import ConfigError, DataError, did_you_mean
from asyncfed.problems.protocol import PackedData
from asyncfed.problems.pytorch.tensor_clients import Pairs, TensorClients

PARTS = ("validation", "test")


def packed(rows: PackedData | Pairs) -> PackedData:
    """What was given client by client, one client after another."""
    return TensorClients.from_pairs(rows) if isinstance(rows, Sequence) else rows


def held_out_rows(given: Mapping[str, PackedData | Pairs] | None, clients: PackedData) -> dict[str, PackedData]:
    """Each client's held-out rows by the name of the part; a client may have none."""
    for part in given or {}:
        if part not in PARTS:
            raise ConfigError(f'held_out names "{part}". {did_you_mean(part, PARTS)}')
    return dict(_check_parts(given or {}, clients))


def unowned_rows(
    test: tuple[Any, Any] | None, held_out: Mapping[str, PackedData], clients: PackedData
) -> dict[str, PackedData]:
    """Test rows that belong to no client, as those of a single one."""
    if test is None:
        return {}
    if "test" in held_out:
        raise ConfigError(
            "Both test and held_out give rows to test on, and both would be test_loss. Give held_out={'test': ...} if "
            "rows belong to clients, test=(x, y) if they belong to no client."
        )
    rows = TensorClients.from_pairs([test])
    _check_rows("test", rows, clients)
    return {"test": rows}


def _check_parts(given: Mapping[str, PackedData | Pairs], clients: PackedData) -> Iterator[tuple[str, PackedData]]:
    for part in PARTS:
        if part not in given:
            continue
        rows = packed(given[part])
        if len(rows.offsets) != len(clients.offsets):
            raise DataError(
                f"held_out has {len(rows.offsets) - 1} clients for {part}, but there are {len(clients.offsets) - 1}; "
                "give one entry per client, ([], []) to those without rows."
            )
        _check_rows(part, rows, clients)
        yield part, rows


def _check_rows(part: str, rows: PackedData, clients: PackedData) -> None:
    for name, ours, theirs in (("x", rows.x, clients.x), ("y", rows.y, clients.y)):
        if ours.shape[1:] != theirs.shape[1:]:
            raise DataError(
                f"A row of {part} has {name} of shape {ours.shape[1:]}, one to train with {theirs.shape[1:]}; all rows "
                "need the same shapes."
            )
