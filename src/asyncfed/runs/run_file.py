"""Where a run's file may be, known before anything is read or computed; and how it is opened to go on."""

from __future__ import annotations

from pathlib import Path

from asyncfed.store.files import check_free
from asyncfed.store.journal import Journal


def check_run_file(file: Path, force: bool) -> None:
    """Refuse a file that a run may not be written to; nothing is made or deleted.

    Args:
        file: where the run is to be written.
        force: whether a run that is there already may be replaced.

    Raises:
        JournalError: a run is there already, or is being written, or something is there that is no run.
    """
    check_free(file, force)


def open_to_resume(path: Path | str) -> Journal:
    """The journal of a run, to be continued; of one that is over, to be read, which needs no right to write.

    Raises:
        JournalError: there is no run, or another process is writing it.
    """
    journal = Journal.open(path)
    if journal.header()["verdict"] != "interrupted":
        return journal
    journal.close()
    return Journal.open(path, write=True)
