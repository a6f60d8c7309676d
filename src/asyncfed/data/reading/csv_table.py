"""Reading CSV files with Arrow, block after block, so that the texts of a large file are never in memory together.

The first block is looked at first: which columns hold numbers. Those are then read as numbers at once, the others as
texts, of which each is kept once. If a column turns out to hold something else further down, the files are read again
with that column as texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from asyncfed.core.errors import DataError
from asyncfed.data.raw_table import Column, RawTable
from asyncfed.data.reading.column_blocks import NumberBlocks, TextBlocks
from asyncfed.data.reading.csv_dialect import Dialect, find_dialect, open_bytes
from asyncfed.data.reading.csv_faults import explain_failure, not_text, require_closed_quotes
from asyncfed.data.reading.progress import report_reading
from asyncfed.data.reading.table_files import TableFiles
from asyncfed.data.reading.text_columns import Reading, Texts, Writing, read_texts
from asyncfed.data.reading.writing_notes import writing_notes

BLOCK = 1 << 20
MOST_REPEATS = 3
"""After so many columns that turned out not to be numbers, all that are left are read as texts."""
NO_ROWS = ("Empty CSV file", "Could not skip initial")
"""How Arrow says that nothing follows the header."""

CheckNames: TypeAlias = Callable[[list[str], Path], None]


class _NotNumbersError(Exception):
    """A column that was taken for numbers holds something else."""

    def __init__(self, column: str) -> None:
        self.column = column


def read_csv_files(
    files: TableFiles, missing: frozenset[str], categories: frozenset[str], check_names: CheckNames
) -> RawTable:
    """The columns of CSV files with the same header.

    Args:
        files: the files, in the order of their rows.
        missing: texts that mean "no value".
        categories: columns whose numbers are names.
        check_names: refuses names of columns: called with them and the file.

    Returns:
        The raw table, and in its notes how it was written.
    """
    dialects = [_dialect(file, check_names) for file in files.files]
    plan = _Plan(files, tuple(dialects), missing, categories)
    _check_headers(files, dialects)
    numbers, decimal_comma, rows = plan.guess()
    repeats = 0
    while True:
        try:
            columns = plan.read(numbers, decimal_comma, rows)
            break
        except _NotNumbersError as wrong:
            repeats += 1
            kept = {name: how for name, how in numbers.items() if name != wrong.column}
            numbers = {} if repeats > MOST_REPEATS else kept
    readings = {
        name: Reading(Column("number", column), numbers[name])
        if not isinstance(column, Texts)
        else read_texts(name, column, missing, as_category=name in categories, delimiter=dialects[0].delimiter)
        for name, column in columns.items()
    }
    notes = writing_notes(readings, utf_16=dialects[0].encoding == "utf-16", has_index=plan.has_index)
    return RawTable({name: reading.column for name, reading in readings.items()}, notes)


def _dialect(file: Path, check_names: CheckNames) -> Dialect:
    try:
        dialect = find_dialect(file)
    except UnicodeDecodeError as error:
        raise not_text(file, error) from error
    check_names(list(dialect.names), file)
    return dialect


def _check_headers(files: TableFiles, dialects: list[Dialect]) -> None:
    first = dialects[0]
    for file, dialect in zip(files.files, dialects, strict=True):
        if set(dialect.names) != set(first.names):
            other = sorted(set(dialect.names) ^ set(first.names))[0]
            raise DataError(
                f'{file} and {files.files[0]} do not have the same columns: only one of them has "{other}". '
                "All files of a table need the same header."
            )
        partition = set(files.partition(file)) & set(first.names)
        if partition:
            raise DataError(f'"{partition.pop()}" is named by the folder of {file} and is a column of it too.')


@dataclass(frozen=True)
class _Plan:
    files: TableFiles
    dialects: tuple[Dialect, ...]
    missing: frozenset[str]
    categories: frozenset[str]

    @property
    def names(self) -> tuple[str, ...]:
        return self.dialects[0].names

    @property
    def has_index(self) -> bool:
        """Whether the first column has no name, as the index of a data frame."""
        return not self.names[0]

    @property
    def kept(self) -> tuple[str, ...]:
        return self.names[1:] if self.has_index else self.names

    def guess(self) -> tuple[dict[str, Writing], bool, int]:
        """From the first block: columns of numbers and how they are written, decimal commas or not, how many rows."""
        file, dialect = self.files.files[0], self.dialects[0]
        block = next(self._blocks(file, dialect, {}, False), None)
        if block is None:
            return {}, False, 0
        rows = int(1.02 * len(block) * max(1.0, self.files.bytes / BLOCK))
        found = {}
        for name in self.kept:
            if name not in self.categories:
                texts = TextBlocks()
                texts.add(block.column(name))
                try:
                    found[name] = read_texts(name, texts.join(), self.missing, delimiter=dialect.delimiter)
                except DataError:
                    continue  # the whole column will tell
        numbers = {name: reading for name, reading in found.items() if reading.column.kind == "number"}
        comma = dialect.delimiter != "," and any(r.writing == "decimal comma" for r in numbers.values())
        wanted = ("plain", "decimal comma") if comma else ("plain",)
        return {name: reading.writing for name, reading in numbers.items() if reading.writing in wanted}, comma, rows

    def read(self, numbers: Mapping[str, Writing], decimal_comma: bool, rows: int) -> dict[str, Any]:
        """The columns: arrays of numbers, and `Texts`."""
        import pyarrow

        keys = dict.fromkeys(key for file in self.files.files for key in self.files.partition(file))
        parted = {key: TextBlocks() for key in keys}
        blocks: dict[str, NumberBlocks | TextBlocks] = {
            name: NumberBlocks(rows) if name in numbers else TextBlocks() for name in self.kept
        }
        for file, dialect in zip(self.files.files, self.dialects, strict=True):
            partition = self.files.partition(file)
            for block in self._blocks(file, dialect, numbers, decimal_comma):
                for name in self.kept:
                    if not blocks[name].add(block.column(name)):
                        raise _NotNumbersError(name)
                for key in keys:
                    parted[key].add_same(partition.get(key), len(block))
        pyarrow.default_memory_pool().release_unused()
        return {name: some.join() for name, some in {**blocks, **parted}.items()}

    def _blocks(
        self, file: Path, dialect: Dialect, numbers: Mapping[str, Writing], decimal_comma: bool
    ) -> Iterator[Any]:
        import pyarrow
        import pyarrow.csv

        texts = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        names = list(dialect.names)
        before = sum(other.stat().st_size for other in self.files.files[: self.files.files.index(file)])
        stream, raw = open_bytes(file)
        report_reading(self.files.path, before, self.files.bytes)
        try:
            reader = pyarrow.csv.open_csv(
                stream,
                pyarrow.csv.ReadOptions(
                    block_size=max(BLOCK, 4 * dialect.header_size),  # a row is as long as its header, or so
                    column_names=names,
                    skip_rows=dialect.header_lines,
                    encoding="utf8" if dialect.encoding == "utf-8-sig" else dialect.encoding,
                ),
                pyarrow.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
                pyarrow.csv.ConvertOptions(
                    column_types={name: pyarrow.float64() if name in numbers else texts for name in names},
                    null_values=sorted(self.missing),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                    decimal_point="," if decimal_comma else ".",
                ),
            )
            block = None
            for block in reader:
                report_reading(self.files.path, before + raw.tell(), self.files.bytes)
                yield block
            if block is not None and len(block) and any("\n" in str(values[-1]) for values in block.columns):
                require_closed_quotes(file, dialect)
        except pyarrow.ArrowInvalid as error:
            column = re.match(r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to double", str(error))
            if column is not None:
                raise _NotNumbersError(names[int(column[1])]) from error
            if not str(error).startswith(NO_ROWS):
                raise explain_failure(file, dialect, str(error).partition("\n")[0]) from error
        except UnicodeDecodeError as error:
            raise not_text(file, error) from error
