"""Whether a run had converged when it ended, by what was measured of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from asyncfed.analysis.protocols import ReportedRun

SMALL_SHARE = 0.005
"""Of all its progress: a run that gained more than this in its last tenth is still falling."""

FEWEST = 10
"""Measurements, below which nothing is said."""

DONE = ("converged", "stopped early", "the target")
NOT_DONE = "not converged"


class Convergence(NamedTuple):
    """Whether a run had converged.

    Args:
        ok: True if it had.
        words: what to say about it, with the next step if it had not.
    """

    ok: bool
    words: str


def judge_convergence(run: ReportedRun) -> Convergence:
    """Whether the run had converged: because it ended by itself, or because its last tenth gained next to nothing.

    Args:
        run: the run.

    Returns:
        The verdict and a sentence.
    """
    if run.verdict != "finished":
        return Convergence(False, f"the run did not end well ({run.verdict})")
    if run.reason.startswith(DONE) or "the target of" in run.reason:
        return Convergence(True, run.reason)
    if run.reason.startswith(NOT_DONE):
        return Convergence(False, run.reason)
    stopping = run.header["experiment"].get("stopping") or {}
    metric = stopping.get("metric", "objective")
    values = np.asarray(run.evaluations.get(metric, ()), np.float64)
    values = -values if metric.endswith("accuracy") else values
    if len(values) < FEWEST or not np.isfinite(values).all():
        return Convergence(False, f"too few measurements ({len(values)}) to see whether the run had converged")
    share = _share_of_last_tenth(values)
    if share <= SMALL_SHARE:
        return Convergence(True, f"the last tenth of the run gained {100 * max(share, 0.0):.1g} % of its progress")
    return Convergence(
        False,
        f"stopped while still falling: the last tenth of the run gained {100 * share:.2g} % of all progress in "
        f"{metric.replace('_', ' ')}. Let it run longer (--rounds, or budget.rounds in TOML)",
    )


def _share_of_last_tenth(values: np.ndarray) -> float:
    """What the last tenth of the measurements gained on the tenth before, as a share of all that was gained.

    >>> round(_share_of_last_tenth(np.linspace(1.0, 0.0, 101)), 3), _share_of_last_tenth(np.zeros(50))
    (0.1, 0.0)
    """
    tenth = max(1, len(values) // 10)
    gained = float(values[-2 * tenth : -tenth].mean() - values[-tenth:].mean())
    progress = float(values[0] - values.min())
    return gained / progress if progress > 0 else 0.0
