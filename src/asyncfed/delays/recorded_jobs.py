"""How long each job of a recorded run's clients took, for simulating another strategy with them."""

from __future__ import annotations

from collections.abc import Iterable

from asyncfed.core.errors import JournalError
from asyncfed.delays.recorded_delays import Job
from asyncfed.store.events import Event
from asyncfed.store.loss_reasons import SERVER_DIED
from asyncfed.store.schema import DISPATCH, LOST, REPORT, SKIPPED


def recorded_jobs(events: Iterable[Event]) -> dict[int, list[Job]]:
    """Each client's jobs in the order in which it was given them.

    A client does one at a time, so a job begins when its ticket is dispatched or when the client's job before it ended,
    whichever is later, and ends when the server receives its answer: download and upload are part of it. Tickets of
    which the journal does not say how they ended, because the run or the server did, are left out.
    """
    dispatched_at: dict[int, float] = {}
    free_since: dict[int, float] = {}
    jobs: dict[int, dict[int, Job]] = {}
    for event in events:
        if event.kind == DISPATCH:
            dispatched_at[event.require_ticket()] = event.time
        elif event.kind in (REPORT, SKIPPED, LOST):
            ticket, client = event.require_ticket(), event.require_client()
            if ticket not in dispatched_at:
                raise JournalError(
                    f"The journal is damaged: event {event.seq} is about ticket {ticket}, which was not dispatched. "
                    "Restore the file from a copy."
                )
            began = max(dispatched_at[ticket], free_since.get(client, 0.0))
            free_since[client] = event.time
            if event.kind != LOST or event.reason != SERVER_DIED:
                jobs.setdefault(client, {})[ticket] = Job(event.time - began, event.kind == LOST)
    return {client: [done[ticket] for ticket in sorted(done)] for client, done in jobs.items()}
