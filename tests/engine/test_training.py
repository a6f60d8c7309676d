"""Pending trainings are done in one call, each from its own start, and those of lost tickets are left out."""

import numpy as np

from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.types import Dispatch, Work
from asyncfed.engine.training import LateTraining
from asyncfed.rules import Vectors


class Adds:
    """A problem whose training adds the client's number; it keeps what it was given."""

    def __init__(self):
        self.calls = []

    def local_train_many(self, jobs, threads=1):
        self.calls.append((jobs, threads))
        return jobs.starts + np.array(jobs.clients, float)[:, None]


def waiting(tickets):
    problem, vectors = Adds(), Vectors(np.zeros(2))
    training = LateTraining(problem, vectors, seed=3, threads=2)
    for ticket, client in tickets:
        dispatch = Dispatch(ticket, client, 0, Work(epochs=ticket + 1))
        vectors.dispatch(dispatch, np.full(2, 10.0 * ticket))
        training.pending[ticket] = dispatch
    return problem, vectors, training


def test_all_that_is_pending_is_trained_in_one_call_with_its_own_start_work_and_key():
    problem, vectors, training = waiting([(0, 5), (1, 6), (2, 5)])
    training.train_all()
    ((jobs, threads),) = problem.calls
    assert {ticket: model.tolist() for ticket, model in vectors.trained.items()} == {
        0: [5.0, 5.0],
        1: [16.0, 16.0],
        2: [25.0, 25.0],
    }
    assert [work.epochs for work in jobs.works] == [1, 2, 3]
    key = purpose_key(3, "train")
    assert jobs.keys == [draw_key(key, 5, 0), draw_key(key, 6, 1), draw_key(key, 5, 2)]
    assert threads == 2
    assert not training.pending


def test_a_lost_ticket_is_not_trained():
    problem, vectors, training = waiting([(0, 5), (1, 6)])
    vectors.forget(0)
    training.train_all()
    assert problem.calls[0][0].clients == [6]
    assert list(vectors.trained) == [1]


def test_starts_may_be_overwritten_because_they_are_copies():
    problem, vectors, training = waiting([(4, 1)])
    training.train_all()
    jobs = problem.calls[0][0]
    assert jobs.overwrite
    jobs.starts[:] = -1.0
    assert vectors.starts[4].tolist() == [40.0, 40.0]
