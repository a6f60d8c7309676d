"""A client that leaves and comes back does not throw the mean of the latest models back to where it began."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.strategies import AFL

LEAVES_AT = 0.6
"""Of the whole time: the model has come most of the way by then."""


@pytest.fixture(scope="module")
def steady():
    """A run in which nobody leaves."""
    experiment = af.replace(af.presets.regression(), budget=af.Budget(rounds=60))
    assert experiment.strategy.aggregate == "latest"
    return experiment, af.run(experiment)


@pytest.mark.parametrize("share_away", [1e-6, 0.01, 0.06, 0.2, 0.39])
def test_no_absence_throws_the_model_back(steady, share_away):
    experiment, without_churn = steady
    whole = float(without_churn.rounds["elapsed"][-1])
    leave = whole * LEAVES_AT
    churn = (
        af.Churn(time=leave, client=0, event="leave"),
        af.Churn(time=leave + share_away * whole, client=0, event="join"),
    )
    run = af.run(af.replace(experiment, churn=churn))
    elapsed, objective = run.evaluations["elapsed"], run.evaluations["objective"]
    before = objective[elapsed <= leave][-1]
    assert objective[elapsed > leave].max() < 1.1 * before
    assert objective[-1] == pytest.approx(without_churn.evaluations["objective"][-1], rel=0.2)


def test_a_client_that_joins_late_does_not_throw_the_model_back_either(steady):
    experiment, without_churn = steady
    moment = 0.6 * float(without_churn.rounds["elapsed"][-1])
    run = af.run(af.replace(experiment, churn=(af.Churn(time=moment, client=0, event="join"),)))
    elapsed, objective = run.evaluations["elapsed"], run.evaluations["objective"]
    assert objective[elapsed > moment].max() < 1.1 * objective[elapsed <= moment][-1]


def test_back_before_the_next_merge_it_stays_in_the_mean_and_later_it_waits_for_its_own_report(hand_run):
    run = hand_run(AFL(concurrency=3, aggregate="latest"))
    assert run.arrive(0, 3.0) == (0, "merge", 1.0)  # (3 + 0 + 0)/3
    assert run.arrive(1, 6.0) == (1, "merge", 3.0)  # (3 + 6 + 0)/3
    run.leave(0)
    run.join(0)
    run.leave(0)
    run.join(0)
    assert run.arrive(2, 9.0) == (2, "merge", 6.0)  # (3 + 6 + 9)/3: nobody noticed
    run.leave(0)
    assert run.arrive(1, 7.0)[1:] == ("merge", 8.0)  # (7 + 9)/2
    run.join(0)
    run.leave(0)
    run.join(0)
    assert run.arrive(2, 5.0)[1:] == ("merge", 6.0)  # (7 + 5)/2
    assert run.arrive(0, 3.0)[1:] == ("merge", 5.0)  # (3 + 7 + 5)/3
    assert run.arrive(1, 4.0)[1:] == ("merge", 4.0)  # (3 + 4 + 5)/3


def test_runs_in_which_nobody_joins_are_written_as_before(steady):
    _, without_churn = steady
    details = [row[8] for row in without_churn.journal.event_rows() if row[8] and "latest_average" in row[8]]
    assert details
    assert not [detail for detail in details if "joined" in detail]
    assert np.isfinite(without_churn.params).all()
