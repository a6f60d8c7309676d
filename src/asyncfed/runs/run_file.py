"""Where a run's file may be, known before anything is read or computed."""

from __future__ import annotations

from pathlib import Path

from asyncfed.store.files import check_free


def check_run_file(file: Path, force: bool) -> None:
    """Refuse a file that a run may not be written to; nothing is made or deleted.

    Args:
        file: where the run is to be written.
        force: whether a run that is there already may be replaced.

    Raises:
        JournalError: a run is there already, or something that is no run.
    """
    check_free(file, force)
