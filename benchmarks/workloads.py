"""The workloads: W1 is all training, W2 all overhead, W3 a network; `many_clients` is W2 with any number of clients."""

from __future__ import annotations

import asyncfed as af
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.engine.evaluation import Evaluation
from asyncfed.strategies import AFL, FedAsync, FedAvg, FedBuff, Strategy

UNWATCHED = Evaluation(every=0, distance=False)
SAMPLES_EACH = 20
SHORT_WORK = Work(epochs=1, batch_size=32, learning_rate=0.001)


def w1(rounds: int) -> af.Experiment:
    """The paper's regression: 10 clients of 200 samples, d = 10, batches of 32, 50 local epochs, 5 in flight."""
    return replace(af.presets.regression(rounds=rounds), split=af.data.IID(), evaluation=UNWATCHED)


def w2(strategy: Strategy, updates: int, num_clients: int = 1000) -> af.Experiment:
    """One step of SGD an update: 20 samples a client, d = 10, 1 local epoch."""
    return af.Experiment(
        name="w2",
        num_clients=num_clients,
        data=af.data.PaperRegression(num_samples=SAMPLES_EACH * num_clients),
        strategy=strategy,
        delays=af.delays.published_laptop(),
        budget=Budget(updates=updates),
        evaluation=UNWATCHED,
    )


def w3(updates: int, num_clients: int) -> af.Experiment:
    """A perceptron 784-64-10: three steps of SGD on batches of 20 an update, 10 in flight; data are given apart."""
    return af.Experiment(
        name="w3",
        num_clients=num_clients,
        strategy=AFL(concurrency=10, work=Work(epochs=1, batch_size=20, learning_rate=0.01)),
        delays=af.delays.published_laptop(),
        budget=Budget(updates=updates),
        evaluation=UNWATCHED,
    )


def w2_strategies(tickets: int = 100) -> dict[str, Strategy]:
    return {
        "AFL": AFL(concurrency=tickets, work=SHORT_WORK),
        "AFL delta_mean": AFL(concurrency=tickets, aggregate="delta_mean", work=SHORT_WORK),
        "FedAsync": FedAsync(concurrency=tickets, work=SHORT_WORK),
        "FedBuff": FedBuff(concurrency=tickets, buffer_size=min(10, tickets), work=SHORT_WORK),
        "FedAvg": FedAvg(cohort_size=tickets, work=SHORT_WORK),
    }


def many_clients(strategy: Strategy, num_clients: int, updates: int) -> af.Experiment:
    """W2 with data that fit in memory a million times: single precision, and rows left where they were drawn."""
    return replace(w2(strategy, updates, num_clients), name="many_clients", dtype="float32", split=af.data.InOrder())
