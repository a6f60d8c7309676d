"""Any strategy with any rule and any uplink: the same bytes on any number of threads, wherever it was interrupted."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.record import UNSET, replace
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.registry import kinds
from asyncfed.rules import Adam, Clipped, Mean, Optimised
from asyncfed.runs.progress import seal
from asyncfed.sim.simulation import Simulation
from asyncfed.store.journal import Journal
from asyncfed.strategies import AFL, FedAsync, FedAvg, FedBuff
from asyncfed.uplinks import ErrorFeedback, TopK

CLIENTS, UPDATES = 6, 40
STRATEGIES = {
    "fedavg": FedAvg(cohort_size=4),
    "fedbuff": FedBuff(concurrency=4, buffer_size=3),
    "fedasync": FedAsync(concurrency=4),
    "afl": AFL(concurrency=4, aggregate="delta_mean"),
}
RULES = {"none": UNSET, "mean": Mean(), "adam": Optimised(optimiser=Adam(lr=0.01)), "clipped": Clipped(norm=0.02)}
RULES |= {kind: made() for kind, made in kinds("rule").items() if kind == "ca2fl"}
UPLINKS = {"whole": UNSET, "sparse": (ErrorFeedback(codec=TopK(fraction=0.3)),)}

stops = st.lists(st.integers(1, UPDATES), min_size=1, max_size=3)


def experiment(strategy, rule, uplink, seed=0):
    work = Work(epochs=2, batch_size=4, learning_rate=0.01, uplink=UPLINKS[uplink])
    return af.Experiment(
        num_clients=CLIENTS,
        data=af.data.PaperRegression(num_samples=8 * CLIENTS),
        strategy=replace(STRATEGIES[strategy], rule=RULES[rule], work=work),
        delays=Delays(compute=Exponential(mean=1.0), dropout=0.1),
        budget=Budget(updates=UPDATES),
        seed=seed,
    )


def check_it_is_the_same_however_it_is_run(base, threads, stops):
    whole = af.run(base, threads=1)
    assert af.run(base, threads=2).sha256 == whole.sha256
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        run_with_interruptions(base, whole.header, path, threads, stops)
        resumed = af.resume(path)
        assert resumed.sha256 == whole.sha256
        assert resumed.params.tobytes() == whole.params.tobytes()
        assert {k: v.tolist() for k, v in resumed.rounds.items()} == {k: v.tolist() for k, v in whole.rounds.items()}
        verification = af.verify(path)
        assert verification.ok, verification.lines
        resumed.journal.close()


def run_with_interruptions(base, header, path, threads, stops):
    """Stop after so many arrivals, forget everything but the file, go on; the last number is used until the end."""
    problem, delays = base.problem(), base.delays.bind(base.num_clients, base.seed)
    journal = Journal.create(path, dict(header) | {"verdict": "interrupted"})
    simulation = Simulation(problem, delays, base.plan(threads), journal)
    later = iter(stops)
    arrivals = 0
    while not simulation.finished:
        arrivals = next(later, max(arrivals, 10))
        simulation.advance(arrivals)
        snapshot, arrays = simulation.checkpoint()
        check_sizes(base, simulation._execution, arrays)
        journal.commit(snapshot, arrays)
        journal.close()
        journal = Journal.open(path, write=True)
        checkpoint = journal.checkpoint()
        journal.rewind(checkpoint[0]["seq"])
        simulation = Simulation(problem, delays, base.plan(threads), journal, checkpoint)
    seal(simulation, journal)
    journal.close()


def check_sizes(base, execution, arrays):
    """The model, what tickets start from and came to, the rule's memory, the residuals of who has trained; no more."""
    params, dispatches = arrays["params"], execution.dispatches
    outstanding, waiting = execution.server.outstanding, execution.server.waiting
    tickets = sorted(arrays["tickets"].tolist())
    assert tickets == sorted(dispatches) == sorted([*outstanding, *waiting])
    assert arrays["models"].shape[0] <= len({d.base_version for d in dispatches.values()})
    trained = set(arrays["trained_tickets"].tolist())
    assert set(waiting) <= trained <= set(tickets)
    assert arrays["trained"].shape == (len(trained), params.size)
    vectors = {"params", "models", "trained", "own", "tickets", "ticket_clients", "ticket_models"}
    rest = arrays.keys() - vectors - {"trained_tickets", "own_clients"}

    rule = getattr(base.strategy, "rule", UNSET)
    remembered = {} if rule is UNSET else rule.init(params, base.num_clients)
    of_rule = {name.removeprefix("rule/memory/"): arrays[name] for name in rest if name.startswith("rule/memory/")}
    assert of_rule.keys() == remembered.keys()
    for name, array in remembered.items():
        if array.shape == params.shape:
            assert of_rule[name].shape == params.shape
        else:  # a table, which grows up to about twice the number of clients
            assert of_rule[name].size <= max(array.size, (2 * base.num_clients + 4) * params.size)

    residuals = {name: arrays[name] for name in rest if not name.startswith("rule/")}
    assert all(array.shape == params.shape for array in residuals.values())
    if base.strategy.work.uplink is UNSET:
        assert not residuals
        return
    new = {int(name.split("/")[1]) for name in residuals if name.startswith("new_memory/")}
    assert new == trained - set(waiting)
    kept = [int(name.split("/")[1]) for name in residuals if name.startswith("client_memory/")]
    assert len(new) + len(kept) == len(residuals)
    assert set(kept) == execution.ledger.merges_by_client.keys() | {dispatches[ticket].client for ticket in waiting}
    assert max(map(kept.count, kept), default=0) <= 2  # the one that counts, and the one that will once it is asked for


threads = st.sampled_from([1, 2])
SEARCH = (Phase.explicit, Phase.reuse, Phase.generate)
"""Without making failures smaller: each try is several runs."""


@given(
    strategy=st.sampled_from(list(STRATEGIES)),
    rule=st.sampled_from(list(RULES)),
    uplink=st.sampled_from(list(UPLINKS)),
    seed=st.integers(0, 99),
    threads=threads,
    stops=stops,
)
@settings(max_examples=15, deadline=None, phases=SEARCH)
def test_threads_and_interruptions_change_nothing(strategy, rule, uplink, seed, threads, stops):
    check_it_is_the_same_however_it_is_run(experiment(strategy, rule, uplink, seed), threads, stops)


@pytest.mark.slow
@pytest.mark.parametrize("uplink", UPLINKS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("strategy", STRATEGIES)
@given(seed=st.integers(0, 10**6), threads=threads, stops=stops)
@settings(max_examples=10, deadline=None, phases=SEARCH)
def test_nor_do_they_in_any_combination(strategy, rule, uplink, seed, threads, stops):
    check_it_is_the_same_however_it_is_run(experiment(strategy, rule, uplink, seed), threads, stops)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("uplink", UPLINKS)
def test_the_mean_is_what_strategies_do_without_a_rule(strategy, uplink):
    without, mean = (af.run(experiment(strategy, rule, uplink)) for rule in ("none", "mean"))
    assert without.params.tobytes() == mean.params.tobytes()


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "none"])
def test_a_rule_is_at_work(rule):
    """Otherwise nothing above would say anything about it."""
    differs = (
        af.run(experiment("fedbuff", rule, "whole")).sha256 != af.run(experiment("fedbuff", "mean", "whole")).sha256
    )
    assert differs == (rule != "mean")
