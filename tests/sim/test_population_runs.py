"""Runs of populations: looped or stepped, resumed or not, of virtual clients or of the same rows in arrays."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.data import Population
from asyncfed.delays import Delays, Device, LogNormal, phones
from asyncfed.runs.simulate import simulate
from asyncfed.sim import loop_arrays, loop_candidate
from asyncfed.strategies import AFL, FedAsync, FedAvg, FedBuff

WORK = Work(epochs=1, batch_size=4, learning_rate=0.05)
STRATEGIES = {
    "latest": AFL(concurrency=6, work=WORK),
    "delta_mean": AFL(concurrency=6, aggregate="delta_mean", work=WORK),
    "fedasync": FedAsync(concurrency=6, work=WORK),
    "fedbuff": FedBuff(concurrency=6, buffer_size=4, work=WORK),
    "fedavg": FedAvg(cohort_size=6, work=WORK),
}
CLOCK = Delays(
    compute=LogNormal(median=1.0, sigma=0.5),
    slowness=LogNormal(median=1.0, sigma=0.3),
    per_sample=0.1,
    dropout=0.05,
    devices=(Device(name="old", share=0.3, slowness=3.0, dropout=0.1, watts=7.0),),
)


def experiment(strategy, num_clients=20, updates=400, delays=CLOCK):
    return af.Experiment(
        num_clients=num_clients,
        data=Population(rows=2, most_rows=9, num_features=3, measured_clients=50),
        strategy=strategy,
        delays=delays,
        budget=Budget(updates=updates),
        seed=3,
    )


@pytest.fixture(autouse=True)
def small_tables_and_an_early_loop(monkeypatch):
    monkeypatch.setattr(loop_arrays, "LEAST_ENTRIES", 8)  # tables have to grow again and again
    monkeypatch.setattr(loop_candidate, "ARRIVALS_WORTH_COMPILING", -1)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("num_clients", [20, 100_000_000])
def test_the_loop_gives_the_bytes_of_stepping(name, num_clients):
    described = experiment(STRATEGIES[name], num_clients)
    problem = described.problem()
    looped = simulate(described, problem=problem, threads=1)
    stepped = simulate(described, problem=problem, threads=1, compiled=False)
    assert looped.sha256 == stepped.sha256
    assert looped.journal.checkpoint()[0] == stepped.journal.checkpoint()[0]
    assert looped.merges_by_client() == stepped.merges_by_client()


def test_the_checkpoint_of_a_loop_is_that_of_stepping_also_where_clients_come_again():
    """Who computes till when is listed by client, not in the order in which clients were first heard from."""
    clock = replace(CLOCK, upload=LogNormal(median=0.5, sigma=1.0))
    for seed in range(3):
        described = replace(experiment(FedAsync(concurrency=31, work=WORK), 200, 301, clock), seed=seed)
        looped, stepped = (simulate(described, threads=1, compiled=compiled) for compiled in (True, False))
        assert looped.journal.checkpoint()[0] == stepped.journal.checkpoint()[0]


@pytest.mark.parametrize("name", ["latest", "fedbuff", "fedavg"])
def test_a_population_gives_the_bytes_of_a_table_with_the_same_rows(name):
    virtual = experiment(STRATEGIES[name])
    listed = virtual.model.build(virtual.clients())
    one, other = simulate(virtual, threads=1), simulate(virtual, problem=listed, threads=1)
    assert one.sha256 == other.sha256
    assert np.array_equal(one.evaluations["objective"], other.evaluations["objective"])


@pytest.mark.parametrize("delays", [CLOCK, phones()], ids=["looped", "stepped"])
def test_a_large_population_is_resumed_and_verified(delays, tmp_path):
    described = experiment(STRATEGIES["fedbuff"], 100_000_000, 300, delays)
    whole = af.run(described, out=tmp_path / "whole.sqlite")
    path = tmp_path / "cut.sqlite"

    def stop(progress):
        if progress.updates > 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        af.run(described, out=path, watch=stop, checkpoint_seconds=0.0)
    assert af.resume(path).sha256 == whole.sha256
    assert af.verify(path).ok


def test_events_beyond_the_checkpoint_are_done_again(tmp_path, monkeypatch):
    """Between two checkpoints events are written alone, where there are many."""
    from asyncfed.runs import simulate as module

    monkeypatch.setattr(module, "MOST_WAITING_EVENTS", 50)
    described = experiment(STRATEGIES["delta_mean"], 1000, 2000)
    path, expected = tmp_path / "cut.sqlite", af.run(described).sha256

    def stop(progress):
        if progress.updates > 900:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        af.run(described, out=path, watch=stop, checkpoint_seconds=3600.0)
    assert sum(1 for _ in af.load(path).journal.event_rows()) > 100
    assert af.resume(path).sha256 == expected


def test_the_samples_of_all_clients_are_summed_up_where_a_strategy_asks():
    by_samples = replace(STRATEGIES["delta_mean"], weighting="samples")
    described = experiment(by_samples)
    listed = described.model.build(described.clients())
    assert simulate(described).sha256 == simulate(described, problem=listed).sha256


def test_who_took_part_is_told_without_a_list_of_all():
    run = af.run(experiment(STRATEGIES["fedbuff"], 100_000_000, 200))
    merges = run.merges_by_client()
    assert sum(merges.values()) == 200
    assert len(merges) == run.rounds["participants"][-1]
    assert run.participation_of_known().tolist() == list(merges.values())
    with pytest.raises(af.errors.ConfigError, match="An array with the merges of each client"):
        run.participation()
    run.plot()
    assert run.optimal_value is not None
