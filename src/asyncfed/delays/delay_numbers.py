"""Delays as numbers and arrays: what a simulator that decides ahead in a compiled loop needs to know of them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from asyncfed.delays.delay_protocols import DelayModel
from asyncfed.delays.distributions import HasNumbers

Array = NDArray[np.float64]


class TicketDraws(NamedTuple):
    """What is drawn for every ticket, and the purpose key of the draws."""

    distribution: HasNumbers
    purpose: int


class ClassNumbers(NamedTuple):
    """Classes of devices, and which client belongs to which: see `devices.ClassBounds`.

    Args:
        slowness: factor on computing seconds, by class.
        watts: power while computing, by class.
        comes_back: probability that a ticket is not lost, by class.
        purpose: purpose key of the clients' numbers.
        first_units: the number of the first client of each class but the first, in order.
        first_clients: which client that is.
    """

    slowness: Array
    watts: Array
    comes_back: Array
    purpose: int
    first_units: Array
    first_clients: NDArray[np.int64]


class DelayNumbers(NamedTuple):
    """A delay model without absences, traces, variation or bandwidths.

    Args:
        num_clients: the clients known at the start.
        compute, download, upload: what is drawn for every ticket.
        slowness: what is drawn once for every client, as for its ticket 0: its own factor on computing seconds.
        classes: what the classes of devices add to it.
        may_lose: whether a ticket is ever lost.
        dropout: purpose key of the draws of who is lost.
        timeout: seconds after which a lost ticket is given up; None: after what it would have taken.
        per_sample: seconds per row and epoch; 0: rows do not matter.
    """

    num_clients: int
    compute: TicketDraws
    download: TicketDraws
    upload: TicketDraws
    slowness: TicketDraws
    classes: ClassNumbers
    may_lose: bool
    dropout: int
    timeout: float | None
    per_sample: float


class NumberedDelays(DelayModel, Protocol):
    """A delay model that may be written in numbers."""

    def as_numbers(self) -> DelayNumbers | None:
        """All of it; None if that is not possible."""
