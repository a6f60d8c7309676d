"""The server losses that the paper's published scripts produced: one unseeded run for each task, mode and fraction."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from asyncfed.store.json_files import read_json

DRAWN_ROUNDS = (1, 10, 50, 100, 200)
"""Where figures show a dot of a published curve, besides its last round."""


@cache
def published_curves() -> dict[tuple[str, str, float], np.ndarray]:
    """The losses after rounds 1, 2, ... by task ("regression", "svm"), strategy and client fraction.

    The strategies are "published" (AFL) and "published_sync".
    """
    stored = read_json(Path(__file__).parent / "published_losses.json")
    return {
        (task, strategy, float(fraction)): np.array(losses)
        for task, of_strategies in stored["losses"].items()
        for strategy, of_fractions in of_strategies.items()
        for fraction, losses in of_fractions.items()
    }


def drawn_points(task: str, strategy: str, fraction: float, last_round: float) -> list[tuple[int, float]]:
    """The rounds and losses of a published curve that a figure up to `last_round` shows; empty if there is no curve."""
    curve = published_curves().get((task, strategy, fraction))
    if curve is None:
        return []
    rounds = [*(r for r in DRAWN_ROUNDS if r < len(curve)), len(curve)]
    return [(r, float(curve[r - 1])) for r in rounds if r <= last_round]
