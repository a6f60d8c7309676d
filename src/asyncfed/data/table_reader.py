"""Tables in files: CSV with the standard library, Parquet with the extra `asyncfed[parquet]`."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.data.raw_table import FIRST_ROW, Column, RawTable, column_of, column_of_texts

DELIMITERS = ",;\t"


def read_table(path: str, missing: Iterable[str], categories: Iterable[str]) -> RawTable:
    """The columns of a file, read once and kept until the file changes."""
    file = Path(path)
    try:
        stamp = file.stat().st_mtime_ns, file.stat().st_size
    except OSError as error:
        raise DataError(f"The table {path} cannot be read ({error.strerror}). Check data.path.") from error
    return _read(path, stamp, tuple(missing), tuple(categories))


@lru_cache(maxsize=2)
def _read(path: str, stamp: tuple[int, int], missing: tuple[str, ...], categories: tuple[str, ...]) -> RawTable:
    file = Path(path)
    readers = {".csv": _read_csv, ".tsv": _read_csv, ".txt": _read_csv, ".parquet": _read_parquet}
    if file.suffix.lower() not in readers:
        raise ConfigError(f'{path} ends in "{file.suffix}"; a table is read from .csv or .parquet.')
    try:
        table = readers[file.suffix.lower()](file, frozenset(missing), frozenset(categories))
    except OSError as error:
        raise DataError(f"The table {path} cannot be read ({error.strerror or error}). Check data.path.") from error
    if not table.num_rows:
        raise DataError(f"The table {path} has no rows. Give it a header and at least two rows for each client.")
    table.require(categories, "named in data.categories")
    return table


def _read_csv(file: Path, missing: frozenset[str], categories: frozenset[str]) -> RawTable:
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            first = lines.readline()
            lines.seek(0)
            rows = csv.reader(lines, delimiter=max(DELIMITERS, key=first.count))
            names = [name.strip() for name in next(rows, [])]
            _check_names(names, file)
            texts = _columns(rows, names, file)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{file} is not UTF-8: byte {error.start} of what was being read is {error.object[error.start]:#04x}. Save "
            f"it as UTF-8, for instance with `iconv -f latin1 -t utf-8 {file.name}`."
        ) from error
    except csv.Error as error:
        raise DataError(f"{file} is not CSV ({error}). Check its quotation marks.") from error
    columns = {n: column_of_texts(n, t, missing, n in categories) for n, t in zip(names, texts, strict=True)}
    return RawTable(columns)


def _columns(rows: Iterable[list[str]], names: list[str], file: Path) -> list[tuple[str, ...]]:
    kept = []
    for number, row in enumerate(rows, FIRST_ROW):
        if len(row) == len(names):
            kept.append(row)
        elif row:
            raise DataError(
                f"{file} has {len(names)} columns, but row {number} has {len(row)} values. Quote texts that hold the "
                "delimiter, or complete the row."
            )
    return list(zip(*kept, strict=True)) if kept else [()] * len(names)


def _check_names(names: list[str], file: Path) -> None:
    if not any(names):
        raise DataError(f"{file} is empty. The first row of a table names its columns.")
    if not all(names):
        raise DataError(f"Column {names.index('') + 1} of {file} has no name. Name every column in the first row.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f'{file} has more than one column "{twice[0]}". Give every column a name of its own.')


def _read_parquet(file: Path, missing: frozenset[str], categories: frozenset[str]) -> RawTable:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigError('Parquet needs pyarrow: pip install "asyncfed[parquet]", or use a .csv file.') from error
    try:
        table = pyarrow.parquet.read_table(file)
    except (pyarrow.ArrowInvalid, ValueError) as error:
        raise DataError(f"{file} is not a Parquet file ({error}). Check data.path.") from error
    _check_names(list(table.column_names), file)
    types = pyarrow.types

    def read(name: str) -> Column:
        column = table.column(name)
        kind = column.type
        if types.is_dictionary(kind):
            kind = kind.value_type
            column = column.cast(kind)
        if types.is_boolean(kind):
            return Column("boolean", column.cast(pyarrow.float64()).to_numpy())
        if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
            return column_of(name, column.cast(pyarrow.float64()).to_numpy())
        if types.is_date(kind) or types.is_timestamp(kind):
            return column_of(name, column.cast(pyarrow.timestamp("us")).to_numpy().astype("datetime64[us]"))
        if types.is_string(kind) or types.is_large_string(kind):
            texts = ["" if text is None or text.strip() in missing else text for text in column.to_pylist()]
            return column_of(name, np.array([text or None for text in texts], dtype=object))
        raise DataError(f'Column "{name}" of {file} is of type {kind}, which is no number, text, date or boolean.')

    columns = {name: read(name) for name in table.column_names}
    return RawTable({n: c.as_category() if n in categories else c for n, c in columns.items()})
