"""What a delay description and a delay model are, the timing a model gives for a ticket, and the check of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncfed.core.errors import DelayError
from asyncfed.core.record import Record
from asyncfed.core.types import Work

Array = NDArray[np.float64]


class Timing(Record):
    """The seconds that one ticket takes, part by part, and whether it is lost on the way.

    Args:
        download: seconds until the client has the model, finite and 0 or more.
        compute: seconds of work, pauses left out, finite and 0 or more.
        upload: seconds until the server has the report, finite and 0 or more.
        lost: True if the ticket never comes back.

    >>> Timing(download=0.0, compute=2.0, upload=0.5, lost=False).compute
    2.0
    """

    download: float
    compute: float
    upload: float
    lost: bool

    def with_transfer(self, download: float, upload: float) -> Timing:
        """This timing with the seconds of transferred bytes added, as `LimitsBandwidth.transfer_seconds` gives them.

        >>> Timing(download=1.0, compute=2.0, upload=0.5, lost=False).with_transfer(3.0, 4.0)
        Timing(download=4.0, compute=2.0, upload=4.5, lost=False)
        """
        return Timing(self.download + download, self.compute, self.upload + upload, self.lost)


@runtime_checkable
class DelayModel(Protocol):
    """How long work takes and which clients are present, for one run with its clients and its seed.

    Every answer depends on the arguments alone, never on earlier calls: then a run can be repeated and resumed.

    | method | answers with |
    |---|---|
    | `timing(client, ticket, work, num_examples)` | the `Timing` of this ticket |
    | `watts(client)` | the power in watts that this client draws while it computes, 0 or more |
    | `finish_compute(client, start, seconds)` | when `seconds` of work begun at `start` are done, absences included |
    | `lost_after(client, ticket, timing)` | the seconds after dispatch at which the server gives up this lost ticket |
    """

    def timing(self, client: int, ticket: int, work: Work, num_examples: int) -> Timing:
        """The parts of this ticket's duration in seconds; `num_examples` are the client's rows."""

    def watts(self, client: int) -> float:
        """The power in watts that this client draws while it computes."""

    def finish_compute(self, client: int, start: float, seconds: float) -> float:
        """The moment by which `seconds` of work begun at `start` are done, the client's absences included."""

    def lost_after(self, client: int, ticket: int, timing: Timing) -> float:
        """The seconds after dispatch at which the server gives up this lost ticket.

        `timing` is what the ticket would have taken, with the seconds of transferred bytes in its download and upload.
        """


@runtime_checkable
class LimitsBandwidth(DelayModel, Protocol):
    """A delay model whose clients' links have a speed, so that large models take longer than small ones.

    A delay model need not be one. Of one that is, the seconds of a ticket's bytes are added to its timing, by
    `timing.with_transfer(*model.transfer_seconds(client, bytes_down, bytes_up))`, before anything else is made of it.
    """

    @property
    def limits_bandwidth(self) -> bool:
        """Whether any client's link has a speed; if not, `transfer_seconds` need not be called."""

    def transfer_seconds(self, client: int, bytes_down: int, bytes_up: int) -> tuple[float, float]:
        """The seconds that a download and an upload of so many bytes take on this client's links.

        Finite and 0 or more, no fewer for more bytes, the same for the same arguments; 0 where there is no limit.
        """


@runtime_checkable
class DelayDescription(Protocol):
    """The `delays` of an experiment: a frozen value that becomes a `DelayModel` once clients and seed are known.

    A `Config` with these members, registered by `asyncfed.register("delays")`, can be named in TOML by its kind.
    """

    @property
    def may_lose(self) -> bool:
        """Whether a ticket can be lost; theorems that need every ticket back do not apply then."""

    def bind(self, num_clients: int, seed: int) -> DelayModel:
        """The delay model of a run with these clients (at least 1) and this seed (0 or more)."""


@dataclass(frozen=True, eq=False)
class ExpectedDurations:
    """Mean seconds of each part of a ticket, one number per client; infinite where the mean is.

    Args:
        download: mean seconds until the client has the model, shape (clients,).
        compute: mean seconds of work, shape (clients,).
        upload: mean seconds until the server has the report, shape (clients,).
    """

    download: Array
    compute: Array
    upload: Array

    @property
    def total(self) -> Array:
        """From dispatch to report, for a client that was idle."""
        return self.download + self.compute + self.upload


@runtime_checkable
class PredictableDelays(DelayDescription, Protocol):
    """A delay description whose mean durations have a formula; of others they are estimated from draws."""

    @property
    def depends_on_examples(self) -> bool:
        """Whether durations depend on how many rows a client has; only then is `num_examples` needed."""

    def expected_durations(
        self, num_clients: int, seed: int, work: Work, num_examples: ArrayLike | None
    ) -> ExpectedDurations:
        """The exact means of each client's tickets."""

    def simplifications(self, queued: bool) -> tuple[str, ...]:
        """What a prediction from means leaves out, a clause each; `queued`: busy clients queue tickets."""


def check_timing(timing: Timing, client: int, ticket: int) -> None:
    """Refuse a timing with a part that is negative, NaN or infinite.

    Args:
        timing: what the delay model gave.
        client, ticket: named in the message.
    """
    if not (0.0 <= timing.download < inf and 0.0 <= timing.compute < inf and 0.0 <= timing.upload < inf):
        raise DelayError(
            f"the delay model gave client {client}, ticket {ticket} a download of {timing.download} s, a compute of "
            f"{timing.compute} s and an upload of {timing.upload} s; each must be finite and >= 0. Correct the delay "
            "model, not the strategy."
        )
