"""Writing tables and numbers to files other programs read: CSV, Parquet or JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asyncfed.core.errors import ConfigError


def write_table(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    """Write columns to `path`; its ending, .csv or .parquet, says how."""
    writers = {".csv": _write_csv, ".parquet": _write_parquet}
    writer = writers.get(path.suffix)
    if writer is None:
        raise ConfigError(f'{path} ends in "{path.suffix}"; a table is written as .csv or .parquet.')
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer(columns, path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror}). Choose another --out.") from error


def write_json(value: Any, path: Path) -> None:
    """Write plain values as JSON, a line for each."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=1) + "\n")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror}). Choose another --out.") from error


def _write_csv(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _write_parquet(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(dict(columns)), path)
