"""A live run that measures in the background has the rows of one that does not, whenever it is killed."""

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

from asyncfed.core.types import Budget
from asyncfed.live.session import CheckpointPolicy


class Delayed:
    """Does a measurement only when somebody asks for its result: the server is as far ahead of it as it may be."""

    def __init__(self):
        self.begun = 0

    def submit(self, measure):
        self.begun += 1

        class Asked(Future):
            def result(self, timeout=None):
                if not self.done():
                    self.set_result(measure())
                return super().result(timeout)

        return Asked()


@pytest.fixture
def pair(live_run):
    """The same run twice: measured at once, and in the background."""
    how = {"budget": Budget(updates=60), "checkpoints": CheckpointPolicy(seconds=7.0)}
    return live_run(**how), live_run(**how)


def rows(live):
    return live.journal.evaluation_columns()


def test_the_same_rows(pair):
    at_once, later = pair
    delayed = Delayed()
    later.session.evaluate_with(delayed.submit)
    at_once.play()
    later.play()
    assert delayed.begun > 5
    assert rows(at_once) == rows(later)
    later.check_whole()


def test_killed_while_it_measures(pair):
    at_once, later = pair
    at_once.play()
    later.session.evaluate_with(Delayed().submit)
    later.commit()
    chance = np.random.default_rng(0)
    while not later.session.finished:
        for _ in range(9):
            if not later.session.finished:
                later.answer(int(chance.choice(list(later.held))))
                later.commit()
        if not later.session.finished:
            later.crash()
            later.session.evaluate_with(Delayed().submit)
            later.commit()
    later.check_whole()
    measured = rows(later)["updates"]
    assert measured == sorted(set(measured))
    assert measured[0] == 0
    assert measured[-1] == 60


def test_in_a_real_thread(pair):
    at_once, later = pair
    with ThreadPoolExecutor(1) as executor:
        later.session.evaluate_with(executor.submit)
        at_once.play()
        later.play()
    assert rows(at_once) == rows(later)
