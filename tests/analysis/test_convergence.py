"""A run has converged if it ended by itself, or if its last tenth gained next to nothing."""

from types import SimpleNamespace

import numpy as np
import pytest

from asyncfed.analysis.convergence import judge_convergence


def run_of(values, reason="all 100 rounds are done", verdict="finished", stopping=None, metric="objective"):
    header = {"experiment": {"stopping": stopping}}
    return SimpleNamespace(header=header, verdict=verdict, reason=reason, evaluations={metric: np.array(values)})


FALLING = np.linspace(10.0, 1.0, 100)
SETTLED = 1.0 + 9.0 * np.exp(-np.arange(100) / 5)


@pytest.mark.parametrize(
    "reason", ["converged: objective ...", "stopped early: ...", "x is 1: the target of 1 is reached"]
)
def test_a_run_that_ended_by_itself_has_converged(reason):
    assert judge_convergence(run_of(FALLING, reason)).ok


def test_a_run_that_was_still_falling_has_not_and_says_what_to_do():
    found = judge_convergence(run_of(FALLING))
    assert not found.ok
    assert found.words == (
        "stopped while still falling: the last tenth of the run gained 10 % of all progress in objective. Let it run "
        "longer (--rounds, or budget.rounds in TOML)"
    )


def test_a_run_that_rose_after_its_best_has_not_although_it_settled_since():
    found = judge_convergence(run_of(SETTLED, "not converged: objective rose to 1 after its best, 0.5 in round 3."))
    assert found == (False, "not converged: objective rose to 1 after its best, 0.5 in round 3.")


def test_a_run_that_had_settled_has_converged():
    assert judge_convergence(run_of(SETTLED)).ok


def test_it_goes_by_the_metric_of_the_run():
    rules = {"metric": "test_accuracy"}
    assert not judge_convergence(run_of(np.linspace(0, 1, 50), stopping=rules, metric="test_accuracy")).ok
    assert judge_convergence(run_of(np.linspace(1, 0, 50), stopping=rules, metric="test_accuracy")).ok


@pytest.mark.parametrize("values", [[3.0, 1.0], np.full(30, np.nan)])
def test_of_few_measurements_nothing_is_said(values):
    found = judge_convergence(run_of(values))
    assert not found.ok
    assert found.words.startswith("too few measurements")


def test_a_run_that_ended_badly_has_not_converged():
    assert not judge_convergence(run_of(SETTLED, verdict="diverged", reason="diverged: ...")).ok
