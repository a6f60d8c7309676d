"""When the model is measured, and what is written down."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, Literal

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import Config
from asyncfed.problems.protocol import MeasuresAtRandom, Problem
from asyncfed.problems.row_losses import MeasuresRows, standard_error


class Evaluation(Config):
    """When the model is measured, and what besides the problem's own measurements. None of it changes the run itself.

    Args:
        every: so many rounds, or merged updates, between measurements; 0 measures at the start and the end only.
        unit: what `every` counts, "round" or "update".
        distance: also measure the distance to the optimum, where the problem has one.
        drift: also measure the paper's client drift, which repeats each training and so doubles the cost.

    >>> Evaluation(every=0).distance
    True
    """

    every: int = 1
    unit: Literal["round", "update"] = "round"
    distance: bool = True
    drift: bool = False

    def __post_init__(self) -> None:
        if self.every < 0:
            raise ConfigError(f"evaluation.every is {self.every}; it must be 0 (start and end only) or more.")


class Evaluator:
    """Measures a model and answers with a row of the journal's evaluations (see `schema.EVALUATION_COLUMNS`).

    `pending` collects measurements made between evaluations, for the next row. `error_of` names a held-out part whose
    loss is measured with its standard error, where the problem can. Without `measures` the rows say how far the run is,
    and nothing is measured.
    """

    def __init__(
        self,
        problem: Problem,
        settings: Evaluation,
        threads: int,
        seed: int,
        error_of: str | None = None,
        measures: bool = True,
    ) -> None:
        self.last: dict[str, float] = {}
        self.pending: dict[str, float] = {}
        self._problem = problem
        self._settings = settings
        self._threads = threads
        self.per_update = settings.unit == "update" and settings.every > 0
        self._key = purpose_key(seed, "first_client_loss")
        self._at_random = problem if isinstance(problem, MeasuresAtRandom) else None
        self._measures = measures
        self._optimum = problem.optimum() if settings.distance and measures else None
        rows = problem if error_of is not None and isinstance(problem, MeasuresRows) else None
        self._rows = rows if rows is not None and error_of in rows.parts else None
        self._error_of = error_of

    def due(self, ends_round: bool, round: int, updates: int, merged: int) -> bool:
        """True if the merge of `merged` updates that led here passed a multiple of `every`."""
        every = self._settings.every
        if not every:
            return False
        if self._settings.unit == "round":
            return ends_round and round % every == 0
        return updates // every > (updates - merged) // every

    def measure(self, params: np.ndarray, version: int) -> dict[str, float]:
        """The problem's own measurements, and the distance to the optimum where there is one.

        What is drawn for a measurement depends on the seed and the model's version alone, so that a model is measured
        alike however often others were, and again when the run is resumed or replayed.
        """
        if not self._measures:
            return {}
        metrics = dict(self._problem.evaluate(params, threads=self._threads))
        if self._at_random is not None:
            metrics.update(self._at_random.random_measurements(params, draw_key(self._key, 0, version)))
        if self._rows is not None and self._error_of is not None:
            metrics[f"{self._error_of}_loss_error"] = standard_error(self._rows.row_losses(params, self._error_of))
        if self._optimum is not None:
            metrics["distance"] = float(np.linalg.norm(params.astype(np.float64) - self._optimum))
        return metrics

    def row(self, params: np.ndarray, version: int, round: int, updates: int, elapsed: float) -> tuple[Any, ...]:
        """Measure this model."""
        metrics = self.measure(params, version)
        metrics.update(self.pending)
        self.pending.clear()
        return self.describe(metrics, version, round, updates, elapsed)

    def describe(
        self, metrics: dict[str, float], version: int, round: int, updates: int, elapsed: float
    ) -> tuple[Any, ...]:
        """The row of what was measured of the model of this version, which becomes the last one measured."""
        self.last = metrics
        finite = {name: float(value) if isfinite(value) else None for name, value in metrics.items()}
        return updates, version, round, elapsed, json.dumps(finite)
