"""What clients measure because their work asks for it, the same in a simulation and on a client."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.types import Work
from asyncfed.problems.protocol import Array, Problem
from asyncfed.problems.row_losses import client_row_losses

MeanLoss: TypeAlias = Callable[[Array], float]
"""A client's mean loss with some params, any penalty included."""

RowLossesOf: TypeAlias = Callable[[Array], NDArray[np.float64]]
"""The losses of a client's single rows with some params, without penalty."""

MEASUREMENTS = ("loss", "start_loss", "start_rms")
"""Names of the settings of `Work`, and of the numbers among the metrics of a report."""


def asks_for_measurements(work: Work) -> bool:
    """Whether the client is to measure something beside its training."""
    return bool(work.loss or work.start_loss or work.start_rms)


def check_measurable(problem: Problem, work: Work | None) -> None:
    """Refuse, before a run, work that asks for what this problem cannot measure; None: not known."""
    if work is not None and work.start_rms:
        client_row_losses(problem, problem.init(0), 0)


def measure_client(
    work: Work, start: Array, trained: Array, mean_loss: MeanLoss, row_losses: RowLossesOf
) -> dict[str, float]:
    """The numbers that the work asks for, by name.

    Args:
        work: what the client was asked to do.
        start: the params it started from.
        trained: the params it ended with.
        mean_loss: of this client.
        row_losses: of this client; called only if the work asks for `start_rms`.

    >>> measure_client(Work(start_rms=True), np.zeros(1), np.ones(1), lambda p: 0.0, lambda p: np.array([3.0, 4.0]))
    {'start_rms': 3.5355339059327378}
    """
    measured = {}
    if work.loss:
        measured["loss"] = float(mean_loss(trained))
    if work.start_loss:
        measured["start_loss"] = float(mean_loss(start))
    if work.start_rms:
        measured["start_rms"] = sqrt(float(np.mean(row_losses(start) ** 2)))
    return measured
