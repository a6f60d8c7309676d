"""Where one algorithm becomes another: the same schedule gives the same models, to 1e-12."""

import numpy as np
import pytest
from tests.conformance.cases import with_settings
from tests.conformance.schedules import draw_world, record

from asyncfed.strategies import NoDiscount, Polynomial, algorithms
from asyncfed.strategies.schedules import ConstantRate

ALGORITHMS = algorithms()
PLAIN = {"discount": NoDiscount()}

LIMITS = {
    "FedBuff with K = 1 and no discount is asynchronous SGD": (
        "fedbuff",
        {"buffer_size": 1, **PLAIN},
        "async_sgd",
        {"server_lr": 1.0},
    ),
    "Ringmaster with a very large R is asynchronous SGD": (
        "ringmaster",
        {"staleness_threshold": 10**9, "server_lr": 1.0},
        "async_sgd",
        {"server_lr": 1.0},
    ),
    "delay-adaptive SGD with a very large tau_C is asynchronous SGD": (
        "delay_adaptive",
        {"staleness_threshold": 10**9, "server_lr": 1.0},
        "async_sgd",
        {"server_lr": 1.0},
    ),
    "DC-ASGD with lam = 0 is asynchronous SGD": (
        "dc_asgd",
        {"rule.compensation": 0.0, "server_lr": 1.0},
        "async_sgd",
        {"server_lr": 1.0},
    ),
    "FedAsync with a polynomial of power 0 has no discount": (
        "fedasync",
        {"discount": Polynomial(power=0.0)},
        "fedasync",
        PLAIN,
    ),
    "AFL's mixing is FedAsync without a discount": (
        "afl_mixing",
        {"mixing": 0.6},
        "fedasync",
        {"mixing": 0.6, **PLAIN},
    ),
    "FedProx with mu = 0 is FedAvg": ("fedprox", {"work.proximal": 0.0}, "fedavg", {}),
    "FedNova with equal steps is FedAvg": ("fednova", {}, "fedavg", {}),
    "FedAvgM without momentum is FedAvg": (
        "fedavgm",
        {"rule.optimiser.b": 0.0, "rule.optimiser.lr": 1.0},
        "fedavg",
        {},
    ),
    "FedAdam with eps = lr = 1e12, v0 = 0 and b1 = 0 is FedAvg": (
        "fedadam",
        {"rule.optimiser.b1": 0.0, "rule.optimiser.lr": 1e12, "rule.optimiser.eps": 1e12, "rule.optimiser.v0": 0.0},
        "fedavg",
        {},
    ),
    "q-fair with q = 0 is FedAvg with equal weights": ("qfair", {"rule.q": 0.0}, "sync", {}),
    "ACED with a limit that is never reached is ACE": ("aced", {"rule.max_age": 10**6}, "ace", {}),
    "over-selection of nobody is FedAvg": (
        "over_selection",
        {"over_selection": 0.0, "cohort_size": "tickets"},
        "fedavg",
        {},
    ),
    "FedAT with one tier is FedAvg with its proximal term": (
        "fedat",
        {"tiers": 1, "cohort_size": "tickets"},
        "fedavg",
        {"work.proximal": 0.4},
    ),
    "FADAS in both readings is the same while nothing counts as stale and moments are not kept": (
        "fadas",
        {"rule.staleness_threshold": 10**9, "rule.b1": 0.0, "rule.b2": 0.0},
        "fadas_paper",
        {"rule.staleness_threshold": 10**9, "rule.b1": 0.0, "rule.b2": 0.0},
    ),
    "Ringmaster without stops at R = infinity is Ringmaster": (
        "ringmaster_without_stops",
        {"staleness_threshold": 10**9},
        "ringmaster",
        {"staleness_threshold": 10**9},
    ),
    "AsGrad in the pure order is delay-adaptive SGD of Mishchenko without adaptation": (
        "asgrad_pure",
        {"server_lr": 0.3},
        "delay_adaptive_mishchenko",
        {"server_lr": 0.3, "staleness_threshold": 10**9},
    ),
    "SCAFFOLD with a single client is FedAvg": ("scaffold", {}, "sync", {}, {"num_clients": 1, "tickets": 1}),
    "Rennala with S = 1 and Ringmaster with R = 1 make the same steps": (
        "rennala",
        {"changes_per_step": 1},
        "ringmaster",
        {"staleness_threshold": 1, "server_lr": 1.0},
        {"everybody": True},
    ),
    "MIFA of everybody is FedAvg with equal weights": ("mifa", {}, "sync", {}, {"everybody": True}),
    "FedVARP of everybody is FedAvg with equal weights": ("fedvarp", {}, "sync", {}, {"everybody": True}),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", LIMITS)
def test_one_becomes_the_other(what):
    name, own, other, others, *how = LIMITS[what]
    how = dict(*how)
    for seed in range(12):
        everybody = {"losses": False, "churn": False} if how.get("everybody") else {}
        fixed = {key: value for key, value in how.items() if key != "everybody"}
        world = draw_world(seed, repeated=False, decay=0.0, proximal=0.0, **everybody, **fixed)
        if everybody:  # at speeds of their own, so that it does not matter who has which ticket
            world.tickets, world.delays.noise = world.num_clients, 0.0
            world.delays.pace = [1.0 + 0.37 * client for client in range(world.num_clients)]
        runs = []
        for algorithm, settings in ((name, own), (other, others)):
            made = ALGORITHMS[algorithm].make(world.tickets, world.work, ConstantRate())
            filled = {key: world.tickets if value == "tickets" else value for key, value in settings.items()}
            runs.append(record(world, with_settings(made, filled), "zeros"))
        one, two = runs
        assert len(one.versions) == len(two.versions)
        for a, b in zip(one.versions, two.versions, strict=True):
            assert np.allclose(a, b, rtol=1e-12, atol=1e-12)
