"""By name, with one ticket or many, algorithms with rules bring the loss down, however much local work there is."""

import pytest

import asyncfed as af
from asyncfed.core.types import Work
from asyncfed.strategies import algorithms
from asyncfed.strategies.schedules import ConstantRate

NAMES = (
    *("ca2fl", "fednova", "dc_asgd", "fedadam", "fedyogi", "fedadagrad", "fedavgm"),
    *("ace", "aced", "mifa", "fedvarp", "feddyn", "aso_fed"),
)


@pytest.mark.slow
@pytest.mark.parametrize("tickets", [1, 20])
@pytest.mark.parametrize("name", NAMES)
def test_much_local_work_on_clients_that_differ_and_stragglers(name, tickets):
    work = Work(epochs=20, learning_rate=0.02)
    experiment = af.Experiment(
        num_clients=20,
        data=af.data.PaperRegression(num_samples=400),
        split=af.data.ConceptShift(),
        strategy=algorithms()[name].make(tickets, work, ConstantRate()),
        delays=af.delays.stragglers(),
        budget=af.Budget(updates=1000),
        evaluation=af.Evaluation(every=10**6),
    )
    run = af.run(experiment)
    first, *_, last = run.evaluations["objective"]
    assert run.verdict == "finished"
    assert last < 0.9 * first
