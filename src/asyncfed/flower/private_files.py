"""Files and folders that only their owner may read, from their first byte on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

PRIVATE_UMASK = 0o077
"""For processes that are to create nothing that others could read."""

_OTHERS = 0o077


def make_private_folder(folder: Path) -> None:
    """Make the folder, if it is not there, for its owner alone. Folders above it are made as usual."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def write_private(file: Path, content: bytes) -> None:
    """Write a new file, in place of one that is there."""
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as private:
        private.write(content)


def open_private_log(file: Path) -> int:
    """A descriptor to append to the file with."""
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def narrow(paths: Iterable[Path]) -> None:
    """Take from others what they may do to these files and folders, and to all that is in them."""
    for path in paths:
        for each in (path, *path.rglob("*")):
            mode = each.lstat().st_mode
            if mode & _OTHERS and not each.is_symlink():
                each.chmod(mode & 0o7777 & ~_OTHERS)
