"""Each rule in whole runs: the same bytes with any number of threads, after any interruption, and replayed."""

import pytest

import asyncfed as af
from asyncfed.core.record import replace
from asyncfed.core.types import Work
from asyncfed.experiment import from_toml, to_toml
from asyncfed.rules import CA2FL, DcAsgd, FedDyn, FedNova, Momentum, Optimised, Scaffold, TableMean
from asyncfed.strategies import ACE, AFL, ASOFed, FedAsync, FedAvg, FedBuff
from asyncfed.strategies.discounts import NoDiscount
from asyncfed.strategies.samplers import UniformAll

BUFFER = FedBuff(concurrency=4, buffer_size=3, discount=NoDiscount())

CASES = {
    "scaffold_rounds": FedAvg(cohort_size=3, weighting="equal", rule=Scaffold()),
    "scaffold_buffer": replace(BUFFER, rule=Scaffold()),
    "scaffold_on_arrival": FedAsync(concurrency=4, rule=Scaffold()),
    "scaffold_queues": AFL(concurrency=5, aggregate="delta_mean", sampler=UniformAll(), rule=Scaffold()),
    "scaffold_momentum": FedAvg(cohort_size=3, rule=Optimised(rule=Scaffold(), optimiser=Momentum(b=0.5))),
    "ca2fl": replace(BUFFER, rule=CA2FL()),
    "ca2fl_on_arrival": AFL(concurrency=4, aggregate="delta_mean", rule=CA2FL()),
    "ca2fl_adam": replace(BUFFER, rule=CA2FL(rule=Optimised())),
    "table_mean": ACE(concurrency=4, rule=TableMean(max_age=12)),
    "feddyn": FedAvg(cohort_size=3, weighting="equal", work=Work(proximal=20.0), rule=FedDyn()),
    "aso_fed": ASOFed(concurrency=4),
    "fednova_rounds": FedAvg(cohort_size=4, rule=FedNova()),
    "fednova_buffer": replace(BUFFER, rule=FedNova()),
    "dc_asgd": AFL(concurrency=4, aggregate="delta_mean", rule=DcAsgd()),
    "dc_asgd_adaptive": replace(BUFFER, rule=DcAsgd(adaptive=True, adaptive_compensation=0.02)),
}

pytestmark = pytest.mark.parametrize("strategy", CASES.values(), ids=CASES)


def experiment(strategy, **how):
    work = Work(epochs=2, batch_size=4, learning_rate=0.005, decay=0.5, proximal=strategy.work.proximal)
    settings = {
        "num_clients": 8,
        "data": af.data.PaperRegression(num_samples=160),
        "split": af.data.QuantitySkew(concentration=1.0),
        "delays": replace(af.delays.heavy_tailed(), dropout=0.05),
        "budget": af.Budget(updates=90),
        "strategy": replace(strategy, work=work),
    }
    return af.Experiment(**{**settings, **how})


def test_it_is_the_same_run_with_two_threads_and_when_it_is_replayed(strategy, tmp_path):
    base = experiment(strategy)
    path = tmp_path / "run.sqlite"
    run = af.run(base, out=path, threads=1)
    assert run.verdict == "finished"
    assert run.evaluations["objective"][-1] < run.evaluations["objective"][0]
    assert run.sha256 == af.run(base, threads=2).sha256
    verification = af.verify(path)
    assert verification.ok, verification.lines


def test_it_is_the_same_run_however_often_it_is_interrupted(strategy, tmp_path, run_in_pieces):
    base = experiment(strategy, budget=af.Budget(updates=60))
    assert run_in_pieces(base, tmp_path / "run.sqlite", arrivals=7).sha256 == af.run(base, threads=1).sha256


def test_it_can_be_written_down(strategy):
    base = experiment(strategy)
    assert from_toml(to_toml(base)) == base
