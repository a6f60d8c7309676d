"""FolderLock: a folder is used by one process at a time, and whoever finds it in use is told by whom."""

from __future__ import annotations

from pathlib import Path

from asyncfed.core.errors import ConfigError
from asyncfed.store.process_lock import LockHeldError, ProcessLock


class FolderLock:
    """The lock on `file`, a file in the folder: it is free again when its holder is gone, however that ended.

    Processes that the holder starts do not inherit it, so they cannot hold it in its place.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lock: ProcessLock | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._lock is not None

    def take(self) -> None:
        """Take the lock and write down who holds it. Refused if another process does."""
        try:
            self._lock = ProcessLock(self.file)
        except LockHeldError as error:
            raise ConfigError(
                f"{self.file.parent} is in use by {error}. Name another folder, or end that process (Ctrl-C in its "
                "terminal, or `kill` and its number) and try again."
            ) from None

    def release(self) -> None:
        """Give the lock up, if it is held."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None
