"""An experiment with so many clients that hardly anybody is asked twice: phones of a population."""

from __future__ import annotations

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.data import Population
from asyncfed.delays import DelayDescription, phones
from asyncfed.engine.evaluation import Evaluation
from asyncfed.experiment import Experiment
from asyncfed.presets.named_strategies import strategy_named
from asyncfed.strategies import FedBuff
from asyncfed.strategies.protocol import Strategy

MOST_AT_WORK, BUFFERS_AT_WORK = 1000, 10
"""Clients at work at once, if nobody says, and how many buffers of FedBuff they fill: its updates are as stale."""


def population(
    *,
    strategy: str | Strategy = "fedbuff",
    reading: str | None = None,
    fraction: float | None = None,
    num_clients: int = 1_000_000,
    rounds: int = 200,
    seed: int = 0,
    delays: DelayDescription | None = None,
) -> Experiment:
    """Linear regression on phones, each with its own few rows, which are made when it trains and then forgotten.

    Memory and the cost of an update do not depend on the number of clients.

    Args:
        strategy: a strategy, or one by name (see `STRATEGIES`) with one local epoch. FedBuff gets a buffer of a tenth
            of the clients at work.
        reading: None; there is no paper to be read.
        fraction: the share of the clients at work at once, above 0 and at most 1; None: 1000 clients, or half of fewer.
        num_clients: how many clients there are, 1 or more.
        rounds: how many rounds, 1 or more.
        seed: of everything random.
        delays: the clock; None for `phones()`.

    Returns:
        The experiment.

    >>> population(num_clients=100_000_000).strategy.concurrency
    1000
    """
    if reading is not None:
        raise ConfigError("--reading is about the paper's experiments, and this is none of them. Leave it out.")
    if fraction is not None and not 0 < fraction <= 1:
        raise ConfigError(f"fraction is {fraction}; it must be above 0 and at most 1.")
    if isinstance(strategy, str):
        share = min(MOST_AT_WORK, num_clients // 2) if fraction is None else int(fraction * num_clients)
        tickets, work = max(1, share), Work(epochs=1, batch_size=20, learning_rate=0.05)
        buffer = max(1, tickets // BUFFERS_AT_WORK)
        strategy = (
            FedBuff(concurrency=tickets, buffer_size=buffer, work=work)
            if strategy == "fedbuff"
            else strategy_named(strategy, tickets, work)
        )
    return Experiment(
        name="population",
        seed=seed,
        num_clients=num_clients,
        data=Population(),
        strategy=strategy,
        delays=phones() if delays is None else delays,
        budget=Budget(rounds=rounds),
        evaluation=Evaluation(every=5),
    )
