"""How a CSV file is written: its encoding, its delimiter, and the names in its first row."""

from __future__ import annotations

import codecs
import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asyncfed.core.errors import DataError
from asyncfed.data.reading.table_files import compression

DELIMITERS = ",;\t|"


@dataclass(frozen=True)
class Dialect:
    """How a file is to be read.

    Args:
        encoding: "utf-8-sig" or "utf-16".
        delimiter: what stands between two values.
        names: the names of the columns.
        header_lines: how many lines the first row takes: one, unless a name holds a line break.
        header_size: the characters of the first row, or so.
    """

    encoding: str
    delimiter: str
    names: tuple[str, ...]
    header_lines: int
    header_size: int


def open_bytes(file: Path) -> Any:
    """The bytes of a file, decompressed; and what tells how many of the file were read: `raw.tell()`."""
    import pyarrow

    raw = pyarrow.OSFile(str(file))
    packed = compression(file)
    return (pyarrow.CompressedInputStream(raw, packed) if packed else raw), raw


def open_text(file: Path, encoding: str) -> io.TextIOWrapper:
    """The text of a file, decompressed, line ends as they are."""
    return io.TextIOWrapper(open_bytes(file)[0], encoding=encoding, newline="")


def find_dialect(file: Path) -> Dialect:
    """How a file is written, from its first bytes and its first row."""
    beginning = open_bytes(file)[0].read(4)
    encoding = "utf-16" if beginning[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    if encoding != "utf-16" and b"\0" in beginning:
        raise DataError(
            f"{file} begins with zero bytes, as UTF-16 without its mark does. Save it as UTF-8, for instance with "
            f"`iconv -f utf-16le -t utf-8 {file.name}`."
        )
    with open_text(file, encoding) as lines:
        first = lines.readline()
    delimiter = max(DELIMITERS, key=first.count)
    with open_text(file, encoding) as lines:
        rows = csv.reader(lines, delimiter=delimiter)
        names = tuple(name.strip() for name in next(rows, []))
        return Dialect(encoding, delimiter, names, rows.line_num, sum(len(name) + 3 for name in names))
