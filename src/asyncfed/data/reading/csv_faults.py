"""What is wrong with a CSV file that could not be read: which row, and what to do about it.

It reads the file again with the standard library, row after row, and is called only when reading failed.
"""

from __future__ import annotations

import csv
from pathlib import Path

from asyncfed.core.errors import DataError
from asyncfed.data.raw_table import FIRST_ROW
from asyncfed.data.reading.csv_dialect import Dialect, open_bytes, open_text

LONGEST_VALUE = 1 << 17
"""Characters of a value beyond which a quotation mark was surely never closed."""


def explain_failure(file: Path, dialect: Dialect, reason: str) -> DataError:
    """The error to raise for a file that the reader refused for this reason."""
    try:
        found = _ragged_row(file, dialect)
        if found is None and "straddling" in reason:  # a value longer than a block
            found = _open_quote(file, dialect)
        return found or _unknown(file, reason)
    except UnicodeDecodeError as error:
        return not_text(file, error)
    except csv.Error:
        return _open_quote(file, dialect) or _unknown(file, reason)


def require_closed_quotes(file: Path, dialect: Dialect) -> None:
    """Refuse a file whose last value is quoted and not closed: it would hold all rows that follow the mark."""
    with open_text(file, dialect.encoding) as lines:
        try:
            for _ in csv.reader(lines, delimiter=dialect.delimiter, strict=True):
                pass
        except csv.Error as error:
            fault = _open_quote(file, dialect) if "unexpected end" in str(error) else None
            if fault is not None:
                raise fault from error


def not_text(file: Path, error: UnicodeDecodeError) -> DataError:
    """The error for bytes that are not in the encoding: their place, and the encoding they may be in."""
    if error.encoding.replace("_", "-").startswith("utf-16"):
        return DataError(f"{file} begins as UTF-16, but is not ({error.reason}). Save it as UTF-8.")
    place, byte = _first_bad_byte(file)
    return DataError(
        f"{file} is not UTF-8: byte {place} of it is {byte:#04x}. Save it as UTF-8, for instance with "
        f"`iconv -f latin1 -t utf-8 {file.name}`."
    )


def _first_bad_byte(file: Path) -> tuple[int, int]:
    before, rest = 0, b""
    stream, _ = open_bytes(file)
    while block := stream.read(1 << 20):
        block = rest + block
        try:
            block.decode("utf-8")
            before, rest = before + len(block), b""
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                return before + error.start, block[error.start]
            before, rest = before + error.start, block[error.start :]
    return before, rest[0] if rest else 0


def _ragged_row(file: Path, dialect: Dialect) -> DataError | None:
    """The first row with too many or too few values."""
    limit = csv.field_size_limit(LONGEST_VALUE)
    try:
        with open_text(file, dialect.encoding) as lines:
            rows = csv.reader(lines, delimiter=dialect.delimiter)
            next(rows, None)
            for number, row in enumerate(rows, FIRST_ROW):
                if row and len(row) != len(dialect.names):
                    if any("\n" in value for value in row):
                        return _open_quote(file, dialect)
                    return DataError(
                        f"{file} has {len(dialect.names)} columns, but row {number} has {len(row)} values. Quote texts "
                        "that hold the delimiter, or complete the row."
                    )
    finally:
        csv.field_size_limit(limit)
    return None


def _open_quote(file: Path, dialect: Dialect) -> DataError | None:
    """The first line with an odd number of quotation marks: one of them is not closed."""
    with open_text(file, dialect.encoding) as lines:
        for number, line in enumerate(lines, 1):
            if line.count('"') % 2:
                shown = line.strip() if len(line) < 60 else line[:57].strip() + "..."
                return DataError(
                    f"{file} has a quotation mark in line {number} that is not closed: {shown} Close it, or write it "
                    'twice ("") inside quotation marks.'
                )
    return None


def _unknown(file: Path, reason: str) -> DataError:
    return DataError(f"{file} cannot be read as CSV ({reason}). Check its delimiters and quotation marks.")
