"""RecordedDelays: what clients took in a run that happened, taken again by the same clients in another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record
from asyncfed.core.types import Work
from asyncfed.delays.timing import Timing


class Job(Record):
    """How long a client worked on a ticket, from when it could begin to the answer; or until it was lost."""

    seconds: float
    lost: bool = False


class RecordedDelays:
    """A `DelayModel` in which the k-th job of client c takes what the k-th recorded job of client c took.

    A client that is asked to do more than was recorded begins again with its first job; one of whom nothing was
    recorded takes what all the others took, in order. Jobs are counted as they are first asked for, so a run with these
    delays can be repeated, but not resumed half-way.

    >>> delays = RecordedDelays({0: [Job(1.0), Job(2.0)]}, num_clients=1)
    >>> [delays.timing(0, ticket, Work(), 8).compute for ticket in (0, 1, 2, 1)]
    [1.0, 2.0, 1.0, 2.0]
    """

    def __init__(self, jobs: Mapping[int, Sequence[Job]], num_clients: int) -> None:
        everybody = [job for client in sorted(jobs) for job in jobs[client]]
        if not any(not job.lost for job in everybody):
            raise ConfigError("the run has no answered ticket, so there is nothing to take durations from.")
        self._jobs = {client: jobs.get(client) or everybody for client in range(num_clients)}
        self._asked: dict[int, int] = dict.fromkeys(self._jobs, 0)
        self._of_ticket: dict[int, Job] = {}

    def timing(self, client: int, ticket: int, work: Work, num_examples: int) -> Timing:
        job = self._of_ticket.get(ticket)
        if job is None:
            jobs, count = self._jobs[client], self._asked[client]
            self._asked[client] = count + 1
            job = self._of_ticket[ticket] = jobs[count % len(jobs)]
        return Timing(0.0, job.seconds, 0.0, job.lost)

    def watts(self, client: int) -> float:
        return 0.0

    def finish_compute(self, client: int, start: float, seconds: float) -> float:
        return start + seconds

    def lost_after(self, client: int, ticket: int, timing: Timing) -> float:
        return timing.compute
