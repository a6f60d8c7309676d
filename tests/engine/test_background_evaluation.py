"""Measuring in the background gives the rows that measuring at once gives, one measurement at a time."""

from concurrent.futures import Future

import numpy as np
import pytest

from asyncfed.core.errors import AsyncFedError
from asyncfed.engine.background_evaluation import BackgroundEvaluation
from asyncfed.engine.evaluation import Evaluation, Evaluator


class SquaredNorm:
    """Enough of a problem to be measured."""

    def evaluate(self, params, threads=1):
        if not np.isfinite(params).all():
            raise AsyncFedError("not a model")
        return {"objective": float(params @ params)}

    def optimum(self):
        return None


class HeldBack:
    """Begins measurements, and does them when the test says so."""

    def __init__(self):
        self.waiting = []

    def submit(self, measure):
        future = Future()
        self.waiting.append((future, measure))
        return future

    def do(self):
        future, measure = self.waiting.pop(0)
        try:
            future.set_result(measure())
        except AsyncFedError as error:
            future.set_exception(error)


@pytest.fixture
def evaluator():
    return Evaluator(SquaredNorm(), Evaluation(), 1, 0)


@pytest.fixture
def held(evaluator):
    later = HeldBack()
    return BackgroundEvaluation(evaluator, later.submit), later


def test_the_row_is_the_one_of_the_moment_it_was_due(evaluator, held):
    background, later = held
    at_once = Evaluator(SquaredNorm(), Evaluation(), 1, 0)
    for each in (evaluator, at_once):
        each.pending["drift"] = 2.0
    model = (np.array([3.0, 4.0]), 7, 2, 14, 1.5)
    assert background.begin(*model) == []
    evaluator.pending["drift"] = 9.0  # of the next measurement
    assert background.is_running
    assert background.take() == []
    later.do()
    assert background.take() == [at_once.row(*model)]
    assert background.take(wait=True) == []
    assert evaluator.last == {"objective": 25.0, "drift": 2.0}
    assert evaluator.pending == {"drift": 9.0}


def test_the_next_one_hands_over_the_row_before(held):
    background, later = held
    background.begin(np.ones(2), 1, 1, 1, 0.5)
    later.do()
    rows = background.begin(np.ones(3), 2, 2, 2, 1.0)
    assert [row[:4] for row in rows] == [(1, 1, 1, 0.5)]
    assert background.is_running


def test_an_error_reaches_whoever_takes_the_row(held):
    background, later = held
    background.begin(np.array([np.nan]), 1, 1, 1, 0.5)
    later.do()
    with pytest.raises(AsyncFedError, match="not a model"):
        background.take()
