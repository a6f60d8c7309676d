"""RecordedDelays: the durations that clients took in a recorded run, used again in another run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record
from asyncfed.core.types import Work
from asyncfed.delays.delay_protocols import Timing


class Job(Record):
    """How long a client worked on a ticket, from when it could begin to its report, or until the ticket was lost.

    Args:
        seconds: the duration, 0 or more.
        lost: True if the ticket was lost.
    """

    seconds: float
    lost: bool = False


class RecordedDelays:
    """A `DelayModel` in which the k-th job of client c takes what the k-th recorded job of client c took.

    A client with more jobs than were recorded begins again with its first; one of which nothing was recorded takes what
    all the others took, in order. Jobs are counted when their timing is first needed, so a run with these delays can be
    repeated, but not resumed half-way.

    Args:
        jobs: the recorded jobs of each client, in order; at least one of them was not lost.
        num_clients: how many clients the run has.

    >>> delays = RecordedDelays({0: [Job(1.0), Job(2.0)]}, num_clients=1)
    >>> [delays.timing(0, ticket, Work(), 8).compute for ticket in (0, 1, 2, 1)]
    [1.0, 2.0, 1.0, 2.0]
    """

    def __init__(self, jobs: Mapping[int, Sequence[Job]], num_clients: int) -> None:
        of_all = [job for client in sorted(jobs) for job in jobs[client]]
        if not any(not job.lost for job in of_all):
            raise ConfigError("the run has no answered ticket, so there are no durations to use. Record a longer run.")
        self._jobs = {client: jobs.get(client) or of_all for client in range(num_clients)}
        self._begun: dict[int, int] = dict.fromkeys(self._jobs, 0)
        self._of_ticket: dict[int, Job] = {}

    def timing(self, client: int, ticket: int, work: Work, num_examples: int) -> Timing:
        """The duration of the client's next recorded job, the same again for the same ticket."""
        job = self._of_ticket.get(ticket)
        if job is None:
            jobs, count = self._jobs[client], self._begun[client]
            self._begun[client] = count + 1
            job = self._of_ticket[ticket] = jobs[count % len(jobs)]
        return Timing(0.0, job.seconds, 0.0, job.lost)

    def watts(self, client: int) -> float:
        """0: no power was recorded."""
        return 0.0

    def finish_compute(self, client: int, start: float, seconds: float) -> float:
        """`start + seconds`: absences are part of the recorded durations."""
        return start + seconds

    def lost_after(self, client: int, ticket: int, timing: Timing) -> float:
        """The seconds until the recorded ticket was lost."""
        return timing.compute
