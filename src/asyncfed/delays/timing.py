"""What an engine asks of a delay model, and what it gets: Timing, DelayModel and the check between them."""

from __future__ import annotations

from math import inf
from typing import Protocol

from asyncfed.core.errors import DelayError
from asyncfed.core.record import Record
from asyncfed.core.types import Work


class Timing(Record):
    """The seconds one ticket takes, part by part, and whether it is lost on the way and never comes back."""

    download: float
    compute: float
    upload: float
    lost: bool


class DelayModel(Protocol):
    """How long work takes and who is there, bound to a run: it knows the clients and the seed.

    Every answer depends on its arguments alone, never on earlier questions.
    """

    def timing(self, client: int, ticket: int, work: Work, num_examples: int) -> Timing:
        """The parts of this ticket's duration; `compute` counts seconds of work, pauses left out."""

    def watts(self, client: int) -> float:
        """The power this client draws while it computes."""

    def finish_compute(self, client: int, start: float, seconds: float) -> float:
        """The moment by which `seconds` of work begun at `start` are done, the client's absences included."""

    def lost_after(self, client: int, ticket: int, timing: Timing) -> float:
        """The seconds after dispatch at which the server gives this lost ticket up."""


def check_timing(timing: Timing, client: int, ticket: int) -> None:
    """Refuse a timing with a part that is negative, NaN or infinite."""
    if not (0.0 <= timing.download < inf and 0.0 <= timing.compute < inf and 0.0 <= timing.upload < inf):
        raise DelayError(
            f"the delay model gave client {client}, ticket {ticket} a download of {timing.download} s, a compute of "
            f"{timing.compute} s and an upload of {timing.upload} s; each must be finite and >= 0. Mend the delay "
            "model, not the strategy."
        )
