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


class DelayNumbers(NamedTuple):
    """A delay model without absences, traces, variation or bandwidths.

    Args:
        compute, download, upload: what is drawn for every ticket.
        slowness: factor on computing seconds, by client.
        watts: power while computing, by client.
        comes_back: probability that a ticket is not lost, by client; None if none ever is.
        dropout: purpose key of the draws of who is lost.
        timeout: seconds after which a lost ticket is given up; None: after what it would have taken.
        per_sample: seconds per row and epoch; 0: rows do not matter.
    """

    compute: TicketDraws
    download: TicketDraws
    upload: TicketDraws
    slowness: Array
    watts: Array
    comes_back: Array | None
    dropout: int
    timeout: float | None
    per_sample: float


class NumberedDelays(DelayModel, Protocol):
    """A delay model that may be written in numbers."""

    def as_numbers(self) -> DelayNumbers | None:
        """All of it; None if that is not possible."""
