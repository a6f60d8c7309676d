"""What a journal says about its clients' jobs, for asking how another strategy would have fared with them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from asyncfed.delays.recorded_delays import Job
from asyncfed.store.loss_reasons import SERVER_DIED
from asyncfed.store.schema import DISPATCH, LOST, REPORT


def recorded_jobs(events: Iterable[tuple[Any, ...]]) -> dict[int, list[Job]]:
    """Each client's jobs in the order in which it was given them.

    A client does one at a time, so a job begins when its ticket is handed out or when the client's job before it ended,
    whichever is later, and ends when the server hears of it: the way there and back is part of it. Tickets of which the
    journal does not say how they ended, because the run or the server did, are left out.
    """
    handed_out: dict[int, float] = {}
    free_since: dict[int, float] = {}
    jobs: dict[int, dict[int, Job]] = {}
    for _, time, kind, ticket, client, _, _, _, detail in events:
        if kind == DISPATCH:
            handed_out[ticket] = time
        elif kind in (REPORT, LOST):
            began = max(handed_out[ticket], free_since.get(client, 0.0))
            free_since[client] = time
            if kind == REPORT or detail is None or json.loads(detail) != SERVER_DIED:
                jobs.setdefault(client, {})[ticket] = Job(time - began, kind == LOST)
    return {client: [done[ticket] for ticket in sorted(done)] for client, done in jobs.items()}
