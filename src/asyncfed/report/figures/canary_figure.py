"""The figure of a canary audit: what the test saw with and without the canary, and the claim it must not beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from asyncfed.privacy_audit.audit import CanaryAudit
from asyncfed.privacy_audit.lower_bounds import trade_off
from asyncfed.report.figures.figure_data import FigureData, Panel, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_BINS, POINTS = 30, 200


def draw_audit(audit: CanaryAudit) -> Figure:
    """A Matplotlib figure of two panels."""
    from asyncfed.report.figures.matplotlib_figures import draw_figure

    return draw_figure(canary_figure(audit))


def canary_figure(audit: CanaryAudit) -> FigureData:
    """The statistic's two distributions; and the error rates of all thresholds beside those the claim allows."""
    tried = len(audit.without)
    verdict = "The claim is refuted." if audit.refutes else "The claim stands."
    return FigureData(
        "canaries",
        f"Canaries: {audit.mode}",
        f"{tried} runs without and {tried} with the canary, which had no part in choosing the test. Claimed: mu "
        f"{audit.claimed_shift:.3g}, epsilon {audit.claimed_epsilon:.3g} at delta {audit.delta:g}; found with "
        f"{100 * audit.confidence:g} % confidence: mu at least {audit.shift:.3g}, epsilon at least "
        f"{audit.epsilon:.3g}. {verdict}",
        (_distributions(audit), _trade_off(audit)),
    )


def _distributions(audit: CanaryAudit) -> Panel:
    both = np.array([*audit.without, *audit.with_canary])
    edges = np.linspace(both.min(), both.max(), min(MOST_BINS, round(len(both) ** 0.5 / 1.5)) + 1)
    series = [
        Series(label, tuple(((edges[1:] + edges[:-1]) / 2).tolist()), _density(values, edges))
        for label, values in (("without the canary", audit.without), ("with the canary", audit.with_canary))
    ]
    note = "Above 0, the test's threshold, the canary is said to have taken part."
    return Panel("What the test saw", "statistic less threshold", "density", tuple(series), note=note)


def _density(values: Sequence[float], edges: np.ndarray) -> tuple[float, ...]:
    counts, _ = np.histogram(values, edges, density=True)
    return tuple(counts.tolist())


def _trade_off(audit: CanaryAudit) -> Panel:
    """Every threshold's false alarms and misses. No test may lie below the claim's curve, up to chance."""
    thresholds = np.sort([*audit.without, *audit.with_canary])
    alarms = [float(np.mean(np.array(audit.without) > threshold)) for threshold in thresholds]
    misses = [float(np.mean(np.array(audit.with_canary) <= threshold)) for threshold in thresholds]
    alpha = np.linspace(0.0, 1.0, POINTS + 2)[1:-1]
    allowed = [trade_off(rate, audit.claimed_shift) for rate in alpha.tolist()]
    shown = np.linspace(0, len(thresholds) - 1, min(POINTS, len(thresholds))).astype(int)
    series = (
        Series("claimed: no test is below", tuple(alpha.tolist()), tuple(allowed), emphasis=True),
        Series("this test, all thresholds", tuple(alarms[i] for i in shown), tuple(misses[i] for i in shown)),
        Series("guessing", (0.0, 1.0), (1.0, 0.0)),
    )
    note = "Below the claimed curve by chance alone is possible; the bound takes account of that."
    return Panel("Errors of the test, and the claim", "false alarms", "misses", series, note=note)
