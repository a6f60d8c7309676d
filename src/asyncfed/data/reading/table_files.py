"""Which files make a table: one file, or all files of a folder, whose names may hold values (`site=A/part.csv`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import unquote

from asyncfed.core.errors import ConfigError, DataError

Format: TypeAlias = Literal["csv", "parquet"]

FORMATS: dict[str, Format] = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet"}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


@dataclass(frozen=True)
class TableFiles:
    """The files of one table, in the order of their rows.

    Args:
        path: the file or folder as it was named.
        format: "csv" or "parquet", the same for all.
        files: the files, at least one.
        bytes: how large they are together.
        stamp: changes when a file does.
    """

    path: str
    format: Format
    files: tuple[Path, ...]
    bytes: int = field(compare=False)
    stamp: tuple[int, int]

    def partition(self, file: Path) -> dict[str, str]:
        """The values that the folders between the table's own and a file name: `{"site": "A"}` of `site=A/part.csv`."""
        folders = file.relative_to(self.path).parts[:-1] if file != Path(self.path) else ()
        named = (folder.partition("=") for folder in folders)
        return {key: unquote(value) for key, equals, value in named if equals}


def find_table_files(path: str) -> TableFiles:
    """The files of a table.

    Args:
        path: a .csv, .tsv, .txt or .parquet file; the former may be compressed, .gz, .zst or .bz2; or a folder of such
            files, of one format. In folders, names that begin with "." or "_" are passed over.

    Returns:
        The files.
    """
    try:
        if Path(path).is_dir():
            found = [file for file in sorted(Path(path).rglob("*")) if file.is_file() and not _hidden(file, path)]
            formats = {form for file in found if (form := _format(file)) is not None}
            files = tuple(file for file in found if _format(file) is not None)
            if len(formats) > 1:
                raise DataError(f"The folder {path} holds both CSV and Parquet files; a table is made of one of them.")
            if not files:
                raise DataError(f"The folder {path} holds no .csv or .parquet file. Check data.path.")
        else:
            files, single = (Path(path),), _format(Path(path))
            formats = set() if single is None else {single}
            Path(path).stat()
        if not formats:
            raise ConfigError(
                f'{path} ends in "{Path(path).suffix}"; a table is read from .csv or .parquet, or a folder of them.'
            )
        stats = [file.stat() for file in files]
    except OSError as error:
        raise DataError(f"The table {path} cannot be read ({error.strerror}). Check data.path.") from error
    size = sum(stat.st_size for stat in stats)
    return TableFiles(path, formats.pop(), files, size, (max(stat.st_mtime_ns for stat in stats), size))


def compression(file: Path) -> str | None:
    """How a file is compressed, by its ending; None if it is not."""
    return COMPRESSIONS.get(file.suffix.lower())


def _format(file: Path) -> Format | None:
    plain = file.with_suffix("") if compression(file) else file
    form = FORMATS.get(plain.suffix.lower())
    return None if form == "parquet" and plain != file else form


def _hidden(file: Path, folder: str) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
