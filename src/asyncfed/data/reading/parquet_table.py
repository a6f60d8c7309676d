"""Reading Parquet files with Arrow, batch after batch. Columns keep the types they were written with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from asyncfed.core.errors import DataError
from asyncfed.data.raw_table import Column, RawTable, require_finite_numbers
from asyncfed.data.reading.column_blocks import NumberBlocks, TextBlocks
from asyncfed.data.reading.csv_table import CheckNames
from asyncfed.data.reading.progress import report_reading
from asyncfed.data.reading.table_files import TableFiles
from asyncfed.data.reading.text_columns import Reading, Texts, read_texts
from asyncfed.data.reading.writing_notes import writing_notes

ROWS_AT_ONCE = 1 << 16
MICROSECONDS_A_DAY = 86_400e6

Stored: TypeAlias = Literal["number", "boolean", "date", "text", "nothing"]


def read_parquet_files(
    files: TableFiles, missing: frozenset[str], categories: frozenset[str], check_names: CheckNames
) -> RawTable:
    """The columns of Parquet files with the same columns; arguments as for `read_csv_files`."""
    opened = [_open(file) for file in files.files]
    names = list(opened[0].schema_arrow.names)
    check_names(names, files.files[0])
    stored = _stored_kinds(files, opened, names)
    keys = dict.fromkeys(key for file in files.files for key in files.partition(file) if key not in names)
    rows = sum(file.metadata.num_rows for file in opened)
    blocks: dict[str, Any] = {name: TextBlocks() if stored[name] == "text" else NumberBlocks(rows) for name in names}
    blocks.update({key: TextBlocks() for key in keys})
    done = 0
    report_reading(files.path, 0, files.bytes)
    for path, file in zip(files.files, opened, strict=True):
        partition = files.partition(path)
        for batch in file.iter_batches(ROWS_AT_ONCE):
            for name in names:
                blocks[name].add(_compact(batch.column(name), stored[name]))
            for key in keys:
                blocks[key].add_same(partition.get(key), len(batch))
            done += len(batch)
            report_reading(files.path, files.bytes * done // max(1, rows), files.bytes)
    readings = {name: _reading(name, stored[name], blocks[name], missing, opened[0]) for name in names}
    readings.update({key: read_texts(key, blocks[key].join(), missing, as_category=key in categories) for key in keys})
    columns = {n: r.column.as_category() if n in categories else r.column for n, r in readings.items()}
    return RawTable(columns, writing_notes(readings))


def _open(file: Path) -> Any:
    import pyarrow
    import pyarrow.parquet

    try:
        schema = pyarrow.parquet.read_schema(file)
        texts = [field.name for field in schema if _is_text(field.type)]
        return pyarrow.parquet.ParquetFile(file, read_dictionary=texts)
    except (pyarrow.ArrowInvalid, ValueError) as error:
        raise DataError(f"{file} is not a Parquet file ({error}). Check data.path.") from error


def _stored_kinds(files: TableFiles, opened: list[Any], names: list[str]) -> dict[str, Stored]:
    """What each column holds, which all files have to agree on."""
    found: dict[str, Stored] = {}
    for path, file in zip(files.files, opened, strict=True):
        schema = file.schema_arrow
        other = set(schema.names) ^ set(names)
        if other:
            raise DataError(
                f'{path} and {files.files[0]} do not have the same columns: only one of them has "{min(other)}". '
                "All files of a table need the same columns."
            )
        for name in names:
            kind = _stored(name, schema.field(name).type, path)
            if found.get(name, "nothing") == "nothing":
                found[name] = kind
            elif kind not in (found[name], "nothing"):
                raise DataError(f'Column "{name}" is a {found[name]} in {files.files[0]}, but a {kind} in {path}.')
    return found


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _stored(name: str, kind: Any, file: Path) -> Stored:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if _is_text(kind):
        return "text"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    if types.is_null(kind):
        return "nothing"
    raise DataError(f'Column "{name}" of {file} is of type {kind}, which is no number, text, date or boolean.')


def _compact(values: Any, stored: Stored) -> Any:
    """The values as float64, or as codes with a list of the texts."""
    import pyarrow
    from pyarrow import types

    if stored == "text":
        kind = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        if not types.is_dictionary(values.type):
            values = values.cast(pyarrow.string()).dictionary_encode()
        return values if values.type == kind else values.cast(kind)
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if stored == "date":
        values = values.cast(pyarrow.timestamp("us", getattr(values.type, "tz", None)), safe=False).cast(
            pyarrow.int64()
        )
    return values.cast(pyarrow.float64(), safe=False)


def _reading(name: str, stored: Stored, blocks: Any, missing: frozenset[str], file: Any) -> Reading:
    joined: Texts | np.ndarray = blocks.join()
    if isinstance(joined, Texts):
        return read_texts(name, joined, missing | {""}, as_category=True)
    if stored == "date":
        zone = getattr(file.schema_arrow.field(name).type, "tz", None)
        return Reading(Column("date", joined / MICROSECONDS_A_DAY), "time zone" if zone else "plain")
    if stored == "boolean":
        return Reading(Column("boolean", joined))
    return Reading(Column("number", require_finite_numbers(name, joined)))
