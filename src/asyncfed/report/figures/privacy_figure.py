"""The figure of a plan of noise: what a client loses, by how often it takes part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncfed.privacy.planning import NoisePlan
from asyncfed.report.figures.figure_data import FigureData, Panel, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_noise_plan(plan: NoisePlan) -> Figure:
    """A Matplotlib figure of one panel."""
    from asyncfed.report.figures.matplotlib_figures import draw_figure

    return draw_figure(noise_plan_figure(plan))


def noise_plan_figure(plan: NoisePlan) -> FigureData:
    """Epsilon against participations, with the cap and what it costs."""
    grown = plan.growth
    line = Series("epsilon", tuple(float(count) for count, _ in grown), tuple(epsilon for _, epsilon in grown))
    cap = Series("cap", (float(plan.participations),), (plan.epsilon,), kind="points")
    panel = Panel("What a client loses", "participations", f"epsilon at delta {plan.delta:g}", (line, cap))
    return FigureData(
        "privacy",
        f"Privacy by participation: {plan.mode}",
        f"Noise multiplier {plan.multiplier:.4g}. No sampling is claimed.",
        (panel,),
    )
