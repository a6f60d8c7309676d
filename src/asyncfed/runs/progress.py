"""A run in progress: how far it is, and its last commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from asyncfed.engine.progress import RunInProgress, RunState
from asyncfed.runs.privacy_record import privacy_header
from asyncfed.runs.result import params_sha256
from asyncfed.store.journal import Journal


class Progress(NamedTuple):
    """How far a run is.

    Args:
        rounds: complete rounds.
        updates: merged updates of clients.
        elapsed: seconds since the start, by the run's own clock.
        objective: the last measured objective, NaN if it is not measured.
    """

    rounds: int
    updates: int
    elapsed: float
    objective: float


Watcher = Callable[[Progress], None]


def progress(state: RunState) -> Progress:
    """How far the run is at this moment."""
    objective = state.last_metrics.get("objective", float("nan"))
    return Progress(state.rounds, state.updates, state.elapsed, objective)


@contextmanager
def finishing(journal: Journal) -> Iterator[None]:
    """Whatever happens in the block, afterwards others may write to the run: it may be resumed from a notebook, say."""
    try:
        yield
    finally:
        journal.finish_writing()


def seal(run: RunInProgress, journal: Journal) -> None:
    """Write the last checkpoint and, if the run is over, how it ended, the digests of what it did, and the
    certificate of a private run."""
    journal.commit(*run.checkpoint(), in_one_file=True)
    if run.finished:
        verdict, reason = run.state.verdict
        digests = {"journal": journal.sha256(), "params": params_sha256(run.state.kept_params)}
        journal.commit(None, None, verdict=verdict, reason=reason, sha256=digests, **privacy_header(journal))
