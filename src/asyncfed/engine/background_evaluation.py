"""Measuring a model while the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from asyncfed.engine.evaluation import Evaluator

Row: TypeAlias = tuple[Any, ...]
"""A row of the journal's evaluations."""

Submit: TypeAlias = Callable[[Callable[[], dict[str, float]]], "Future[dict[str, float]]"]
"""Begins a measurement, in another thread or, where it is short, at once."""


class _Begun(NamedTuple):
    """A measurement that was begun: when it was due, what was collected for its row, and its result to come."""

    version: int
    round: int
    updates: int
    elapsed: float
    pending: dict[str, float]
    result: Future[dict[str, float]]


class BackgroundEvaluation:
    """At most one measurement at a time: the next one waits for it, so that no more than one old model is kept.

    The row says when the measurement was due, not when it was done, so it is the one that measuring at once would have
    given. A merge makes a new array as long as the measured one is referred to, so that it does not change meanwhile.
    """

    def __init__(self, evaluator: Evaluator, submit: Submit) -> None:
        self._evaluator, self._submit = evaluator, submit
        self._begun: _Begun | None = None

    @property
    def is_running(self) -> bool:
        """Whether a measurement was begun and is not done."""
        return self._begun is not None and not self._begun.result.done()

    def begin(self, params: np.ndarray, version: int, round: int, updates: int, elapsed: float) -> list[Row]:
        """Begin to measure this model. Returns the row of the one before, if it was not taken yet."""
        rows = self.take(wait=True)
        evaluator = self._evaluator
        pending, evaluator.pending = evaluator.pending, {}
        result = self._submit(partial(evaluator.measure, params, version))
        self._begun = _Begun(version, round, updates, elapsed, pending, result)
        return rows

    def take(self, wait: bool = False) -> list[Row]:
        """The row of the measurement that was begun, if it is done or is to be waited for; an error in it is raised."""
        begun = self._begun
        if begun is None or not (wait or begun.result.done()):
            return []
        self._begun = None
        metrics = {**begun.result.result(), **begun.pending}
        return [self._evaluator.describe(metrics, begun.version, begun.round, begun.updates, begun.elapsed)]
