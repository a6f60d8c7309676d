"""The runs of a folder: which there are, and their names in addresses. Nothing outside the folder is ever opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

ENDINGS = (".sqlite", ".db")
"""How the names of runs' files end."""

MOST_RUNS = 20_000
"""Files of a folder that are listed; a folder with more is somebody's whole disk."""

DEEPEST = 6
"""Folders in folders that are looked into."""

_PLAIN = re.compile(rb"[A-Za-z0-9._-]")
_ESCAPED = re.compile(r"~([0-9A-F]{2})")


class NoSuchRunError(Exception):
    """There is no run of that name in the folder, or it may not be shown."""


def run_id(relative: str) -> str:
    """A file's path below the folder as one part of an address.

    >>> run_id("compare/a b.sqlite")
    'compare~2Fa~20b.sqlite'
    """
    parts = (
        bytes([byte]).decode() if _PLAIN.match(bytes([byte])) else f"~{byte:02X}" for byte in os.fsencode(relative)
    )
    return "".join(parts)


def relative_path(name: str) -> str:
    """The path that `run_id` made this of.

    >>> relative_path("compare~2Fa~20b.sqlite")
    'compare/a b.sqlite'

    Raises:
        NoSuchRunError: it is nothing that `run_id` makes.
    """
    try:
        path = os.fsdecode(_ESCAPED.sub(lambda found: chr(int(found[1], 16)), name).encode("latin-1"))
    except UnicodeEncodeError as error:
        raise NoSuchRunError(name) from error
    if run_id(path) != name:
        raise NoSuchRunError(name)
    return path


class RunFolder:
    """A folder of runs, or one run alone.

    Args:
        place: the folder, or the file of the only run that is shown.
    """

    def __init__(self, place: Path) -> None:
        self._only = place.name if place.is_file() else None
        self.path = (place.parent if self._only else place).resolve()

    def paths(self) -> dict[str, Path]:
        """The files that may be runs, by their names in addresses, in the order of these."""
        if self._only:
            found = iter([(self._only, True)])
        else:
            found = _walk(str(self.path), "", DEEPEST)
        named = ((run_id(relative), self.path / relative, is_link) for relative, is_link in islice(found, MOST_RUNS))
        return dict(sorted((name, path) for name, path, is_link in named if not is_link or self._is_inside(path)))

    def find(self, name: str) -> Path:
        """The file of this run.

        Raises:
            NoSuchRunError: there is none, it is no file of this folder, or a link out of it.
        """
        relative = relative_path(name)
        parts = Path(relative).parts
        is_hidden = any(part.startswith(".") for part in parts)
        path = self.path / relative
        wrong = "\0" in relative or Path(relative).is_absolute() or is_hidden or not relative.endswith(ENDINGS)
        if self._only and relative == self._only:
            wrong = False
        if wrong or (self._only and relative != self._only) or not self._is_inside(path):
            raise NoSuchRunError(name)
        return path

    def _is_inside(self, path: Path) -> bool:
        """Whether it is a file that lies in the folder when all links are followed."""
        try:
            return path.resolve(strict=True).is_relative_to(self.path) and path.is_file()
        except (OSError, RuntimeError, ValueError):
            return False


def _walk(folder: str, prefix: str, depth: int) -> Iterator[tuple[str, bool]]:
    """Files that may be runs, and whether they are links; links to folders are not followed, what cannot be read is
    left out."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth:
                yield from _walk(entry.path, f"{prefix}{entry.name}/", depth - 1)
        elif entry.name.endswith(ENDINGS):
            yield prefix + entry.name, not entry.is_file(follow_symlinks=False)
