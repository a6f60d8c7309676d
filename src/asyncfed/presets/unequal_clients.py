"""An experiment in which it matters who is heard: every client has a relation of its own, and a fifth is slow."""

from __future__ import annotations

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.data import ConceptShift, PaperRegression
from asyncfed.delays import DelayDescription, stragglers
from asyncfed.experiment import Experiment
from asyncfed.presets.named_strategies import strategy_named
from asyncfed.strategies.protocol import Strategy


def unequal(
    *,
    strategy: str | Strategy = "fedbuff",
    reading: str | None = None,
    fraction: float = 0.5,
    num_clients: int = 20,
    rounds: int = 200,
    seed: int = 0,
    delays: DelayDescription | None = None,
) -> Experiment:
    """Linear regression among clients that differ: no model suits all, and a fifth of them takes ten times as long.

    The paper's data, each client's targets with a part that follows from its features in a way of its own (as much
    spread as the targets have), so that stragglers hold what nobody else has.

    Args:
        strategy: a strategy, or one by name (see `STRATEGIES`) with one local epoch.
        reading: None; there is no paper to be read.
        fraction: the share of the clients at work at once, above 0 and at most 1.
        num_clients: how many clients there are, 1 or more.
        rounds: how many rounds, 1 or more.
        seed: of everything random.
        delays: the clock; None for `stragglers()`.

    Returns:
        The experiment.

    >>> unequal(rounds=3).split.fraction
    1.0
    """
    if reading is not None:
        raise ConfigError("--reading is about the paper's experiments, and this is none of them. Leave it out.")
    if not 0 < fraction <= 1:
        raise ConfigError(f"fraction is {fraction}; it must be above 0 and at most 1.")
    if isinstance(strategy, str):
        work = Work(epochs=1, batch_size=32, learning_rate=0.02)
        strategy = strategy_named(strategy, max(1, int(fraction * num_clients)), work)
    return Experiment(
        name="unequal",
        seed=seed,
        num_clients=num_clients,
        data=PaperRegression(),
        split=ConceptShift(fraction=1.0, strength=1.0),
        strategy=strategy,
        delays=stragglers() if delays is None else delays,
        budget=Budget(rounds=rounds),
    )
