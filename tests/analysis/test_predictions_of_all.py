"""Participation and staleness are predicted only of algorithms whose runs then show them."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.analysis.participation import predicted_participation
from asyncfed.core.errors import ConfigError
from asyncfed.delays import Delays, Exponential
from asyncfed.strategies.algorithm import algorithms
from asyncfed.strategies.schedules import ConstantRate

UPDATES, CLIENTS, TICKETS = 3000, 8, 4
NO_FORMULA = {
    *("ringmaster", "ringmaster_without_stops", "delay_adaptive_mishchenko", "asgrad_pure", "asyncfeded", "port"),
    "aflguard",
}
"""Who is merged depends on who was late, has just reported, or sent what: a formula for draws alone would be wrong."""


def experiment_of(name: str) -> af.Experiment:
    work = af.Work(steps=1, batch_size=4, learning_rate=1e-4)
    strategy = algorithms()[name].make(TICKETS, work, ConstantRate())
    delays = Delays(compute=Exponential(mean=1.0), slowness=af.delays.Uniform(low=0.3, high=3.0))
    data = af.data.PaperRegression(num_samples=64, num_features=2)
    return af.Experiment(
        num_clients=CLIENTS,
        data=data,
        strategy=strategy,
        delays=delays,
        budget=af.Budget(updates=UPDATES),
        evaluation=af.Evaluation(every=0),
    )


@pytest.mark.parametrize("name", sorted(NO_FORMULA))
def test_there_is_no_formula_where_work_is_given_up_or_dropped_or_who_reports_goes_on(name):
    with pytest.raises(ConfigError, match="participation has no formula"):
        predicted_participation(experiment_of(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", algorithms())
def test_what_is_predicted_is_what_runs_show(name):
    experiment = experiment_of(name)
    try:
        predicted = predicted_participation(experiment)
    except ConfigError:
        return  # it says why there is none
    run = af.run(experiment)
    merges = run.participation()
    shares = merges / merges.sum()
    # Merges of a client are less random than independent draws, so this is more than their standard error.
    error = np.sqrt(predicted.share * (1 - predicted.share) / merges.sum())
    assert np.abs(shares - predicted.share).max() <= 6 * error.max(), (shares, predicted.share)
    if predicted.staleness is None or not np.isfinite(predicted.staleness).all():
        return
    staleness = run.rounds["staleness_mean"].mean()
    assert staleness == pytest.approx(float(predicted.share @ predicted.staleness), rel=0.06, abs=0.02)
