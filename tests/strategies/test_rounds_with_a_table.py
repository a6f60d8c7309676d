"""MIFA and FedVARP: rounds by hand, FedAvg as a limit, and the optimum of all from small cohorts."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.record import replace
from asyncfed.core.types import Work
from asyncfed.problems import LinearModel
from asyncfed.rules import CA2FL, TableMean
from asyncfed.strategies import FedAvg, algorithms
from asyncfed.strategies.schedules import ConstantRate

STEP = Work(batch_size=10**6, learning_rate=0.05)
NAMES = ("mifa", "fedvarp")


def named(name, tickets, work=STEP):
    return algorithms()[name].make(tickets, work, ConstantRate())


def test_what_the_names_stand_for():
    assert named("mifa", 3) == FedAvg(cohort_size=3, weighting="equal", work=STEP, rule=TableMean())
    assert named("fedvarp", 3) == FedAvg(cohort_size=3, weighting="equal", work=STEP, rule=CA2FL())


def test_mifas_rounds_by_hand(hand_run):
    """Who is lost counts with its last change; who never reported, not at all."""
    run = hand_run(named("mifa", 3), num_examples=(1, 5, 1))
    run.arrive(0, 2.0)
    run.lose(2)
    assert run.arrive(1, 4.0) == (0, "merge", 3.0)  # (2 + 4)/2, whatever their samples
    run.lose(0)
    run.arrive(1, 4.0)  # D = 1
    assert run.arrive(2, 9.0) == (0, "merge", 6.0)  # D = 6: (2 + 1 + 6)/3
    run.arrive(0, 6.0)
    run.arrive(1, 6.0)
    assert run.arrive(2, 9.0)[2] == pytest.approx(7.0)  # (0 + 0 + 3)/3


def test_fedvarps_rounds_by_hand(hand_run):
    run = hand_run(named("fedvarp", 3), num_examples=(1, 5, 1))
    run.arrive(0, 2.0)
    run.lose(2)
    assert run.arrive(1, 4.0) == (0, "merge", 3.0)  # y = 0: (2 + 4)/2; then y = (2, 4, 0), their mean 2
    run.lose(0)
    run.arrive(1, 4.0)  # D = 1
    assert run.arrive(2, 9.0) == (0, "merge", 6.5)  # ((1 - 4) + (6 - 0))/2 + 2; y = (2, 1, 6), their mean 3
    run.lose(1)
    run.lose(2)
    assert run.lose(0)[0] == "hold"  # nobody reported: no round
    run.arrive(0, 6.5)
    run.lose(1)
    assert run.lose(2) == ("merge", 7.5)  # (0 - 2) + 3


def experiment(strategy, **how):
    settings = {
        "num_clients": 6,
        "data": af.data.PaperRegression(num_samples=120),
        "split": af.data.ConceptShift(),
        "model": LinearModel(l2=0.01),
        "evaluation": af.Evaluation(every=100),
        "budget": af.Budget(rounds=600),
    }
    return af.Experiment(strategy=strategy, **{**settings, **how})


@pytest.mark.parametrize("name", NAMES)
def test_with_everybody_available_it_is_fedavg_with_equal_weights(name):
    work = Work(epochs=3, batch_size=8, learning_rate=0.01)
    how = {"split": af.data.QuantitySkew(concentration=1.0), "budget": af.Budget(rounds=20)}
    plain = af.run(experiment(FedAvg(cohort_size=6, weighting="equal", work=work), **how))
    assert af.run(experiment(named(name, 6, work), **how)).params == pytest.approx(plain.params, rel=1e-10)


@pytest.mark.parametrize("name", ["mifa", pytest.param("fedvarp", marks=pytest.mark.slow)])
def test_small_cohorts_of_which_some_are_lost_reach_the_optimum_of_all(name):
    how = {"delays": replace(af.delays.stragglers(), dropout=0.2)}
    run = experiment(named(name, 2), **how)
    optimum = run.problem().optimum()
    scale = np.linalg.norm(optimum)
    assert np.linalg.norm(af.run(run).params - optimum) < 1e-9 * scale
    plain = experiment(FedAvg(cohort_size=2, weighting="equal", work=STEP), **how)
    assert np.linalg.norm(af.run(plain).params - optimum) > 0.01 * scale
