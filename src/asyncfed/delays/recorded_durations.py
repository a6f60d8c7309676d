"""RecordedDurations: the durations of a recorded run as the delays of another experiment."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Work
from asyncfed.delays.delay_protocols import ExpectedDurations, Timing
from asyncfed.delays.recorded_delays import Job
from asyncfed.delays.trace_files import file_state
from asyncfed.registry import register


@register("delays")
class RecordedDurations(Config, tag_field="kind", tag="recorded"):
    """Tickets take as long as those of a recorded run, client by client and in their order.

    In turn k, that is tickets `k * num_clients` to `(k + 1) * num_clients - 1`, client c takes what its k-th recorded
    job took, and loses the ticket if that was lost; after its last job it begins again with the first. So what was slow
    for a while is slow for a while, and a ticket takes as long under any strategy. A client of which nothing was
    recorded takes what one of the others took. The durations include download, upload and absences, and count for
    whatever work a ticket has: to have them in proportion to the work, put them into `PerWork`.

    `what_if` is stricter and gives the k-th job of a client exactly, whatever its ticket; but it has to count.

    Args:
        file: the file of the run, simulated or live.
    """

    file: str

    @property
    def may_lose(self) -> bool:
        """Whether a recorded ticket was lost. Reads the file."""
        return any(job.lost for jobs in _read(self.file, file_state(self.file)).values() for job in jobs)

    @property
    def depends_on_examples(self) -> bool:
        """False: a recorded job takes what it took."""
        return False

    def bind(self, num_clients: int, seed: int) -> BoundRecordedDurations:
        """The delay model of a run with so many clients. Reads the file."""
        return BoundRecordedDurations(_read(self.file, file_state(self.file)), num_clients)

    def expected_durations(
        self, num_clients: int, seed: int, work: Work, num_examples: ArrayLike | None = None
    ) -> ExpectedDurations:
        """The mean of each client's recorded jobs, lost ones left out; of a client that lost all, with them."""
        model = self.bind(num_clients, seed)
        answered = [[job.seconds for job in model.jobs(c) if not job.lost] for c in range(num_clients)]
        every = [[job.seconds for job in model.jobs(c)] for c in range(num_clients)]
        compute = np.array([float(np.mean(some or all_)) for some, all_ in zip(answered, every, strict=True)])
        return ExpectedDurations(np.zeros(num_clients), compute, np.zeros(num_clients))

    def simplifications(self, queued: bool) -> tuple[str, ...]:
        """What a prediction from means leaves out of account."""
        found = ["the computing times are not exponential"] if queued else []
        return (*found, "tickets are lost, which is left out") if self.may_lose else tuple(found)


class BoundRecordedDurations:
    """`RecordedDurations` of one run.

    Args:
        jobs: the recorded jobs of each client that has any, in order.
        num_clients: how many clients the run has; as many tickets are a turn.
    """

    def __init__(self, jobs: dict[int, list[Job]], num_clients: int) -> None:
        self._jobs = jobs
        self._known = sorted(jobs)
        self._turn = num_clients

    def jobs(self, client: int) -> list[Job]:
        """The jobs that this client repeats: its own, or those of another if it has none."""
        return self._jobs.get(client) or self._jobs[self._known[client % len(self._known)]]

    def timing(self, client: int, ticket: int, work: Work, num_examples: int) -> Timing:
        """The duration of the client's job at the turn of this ticket."""
        jobs = self.jobs(client)
        job = jobs[ticket // self._turn % len(jobs)]
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


@lru_cache(maxsize=4)
def _read(path: str, state: tuple[int, int]) -> dict[int, list[Job]]:
    from asyncfed.delays.recorded_jobs import recorded_jobs
    from asyncfed.store import Journal

    journal = Journal.open(path)
    try:
        jobs = recorded_jobs(journal.event_rows())
    finally:
        journal.close()
    if all(job.lost for of_client in jobs.values() for job in of_client):
        raise ConfigError(f"{path} has no answered ticket, so there are no durations to use. Record a longer run.")
    return jobs
