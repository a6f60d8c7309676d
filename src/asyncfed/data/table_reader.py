"""Tables in files: CSV, also compressed, and Parquet; one file, or a folder of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from asyncfed.core.errors import DataError
from asyncfed.data.raw_table import RawTable
from asyncfed.data.reading.csv_table import read_csv_files
from asyncfed.data.reading.parquet_table import read_parquet_files
from asyncfed.data.reading.table_files import TableFiles, find_table_files


def read_table(path: str, missing: Iterable[str], categories: Iterable[str]) -> RawTable:
    """The columns of a table, read once and kept until a file changes.

    Args:
        path: a file or a folder, see `find_table_files`.
        missing: texts that mean "no value".
        categories: columns whose numbers are names, such as codes.

    Returns:
        The raw table.
    """
    return _read(find_table_files(path), frozenset(missing), tuple(categories))


@lru_cache(maxsize=1)
def _read(files: TableFiles, missing: frozenset[str], categories: tuple[str, ...]) -> RawTable:
    read = _read_csv if files.format == "csv" else _read_parquet
    try:
        table = read(files, missing, frozenset(categories))
    except OSError as error:
        raise DataError(
            f"The table {files.path} cannot be read ({error.strerror or error}). Check data.path."
        ) from error
    if not table.num_rows:
        raise DataError(f"The table {files.path} has no rows. Give it a header and at least two rows for each client.")
    table.require(categories, "named in data.categories")
    return table


def _read_csv(files: TableFiles, missing: frozenset[str], categories: frozenset[str]) -> RawTable:
    return read_csv_files(files, missing, categories, _check_names)


def _read_parquet(files: TableFiles, missing: frozenset[str], categories: frozenset[str]) -> RawTable:
    return read_parquet_files(files, missing, categories, _check_names)


def _check_names(names: list[str], file: Path) -> None:
    """Refuse names that are missing, but for the first, or there twice."""
    if not any(names):
        raise DataError(f"{file} is empty. The first row of a table names its columns.")
    if not all(names[1:]):
        raise DataError(f"Column {names.index('', 1) + 1} of {file} has no name. Name every column in the first row.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f'{file} has more than one column "{twice[0]}". Give every column a name of its own.')
