"""The paper's two experiments, in the reading of its text or of its published scripts."""

from __future__ import annotations

from typing import Literal, get_args

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.types import Budget, Work
from asyncfed.data import (
    DataSource,
    LabelDirichlet,
    PaperClassification,
    PaperRegression,
    Published,
    QuantileDirichlet,
    Split,
)
from asyncfed.delays import DelayDescription, published_laptop
from asyncfed.experiment import Experiment
from asyncfed.presets.named_strategies import strategy_named
from asyncfed.problems.linear import LinearModel
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.schedules import DelayAware

Reading = Literal["text", "published"]


def regression(
    *,
    strategy: str | Strategy = "afl",
    reading: Reading = "text",
    fraction: float = 0.5,
    num_clients: int = 10,
    rounds: int = 400,
    seed: int = 0,
    delays: DelayDescription | None = None,
) -> Experiment:
    """The paper's linear regression: 2,000 samples, d = 10, 50 local epochs, base rate 0.001, 400 rounds.

    `reading="text"`: the loss with its 1/2, a Dirichlet(0.5) split over quantiles of the target, and clients that
    download. `reading="published"`: PyTorch's MSE without the 1/2, the scripts' per-sample split (in truth IID), their
    initial delay spread of 2 s; use it with the strategy "published" or "published_sync".

    Args:
        strategy: a strategy, or one by name (see `STRATEGIES`) with the paper's local work.
        reading: "text" or "published", as above.
        fraction: the share of the clients at work at once, above 0 and at most 1.
        num_clients: how many clients there are, 1 or more.
        rounds: how many rounds, 1 or more.
        seed: of everything random.
        delays: the clock; None for the published scripts' laptop.

    Returns:
        The experiment.

    >>> regression(rounds=3).budget.rounds
    3
    """
    text = _reads_text(reading)
    return _paper(
        name="regression",
        strategy=strategy,
        data=PaperRegression(),
        split=QuantileDirichlet(concentration=0.5, min_size=2) if text else Published(concentration=0.5),
        model=LinearModel(loss="least_squares") if text else LinearModel(loss="mse", first_client_batches="reshuffled"),
        work=Work(epochs=50, batch_size=32, learning_rate=0.001),
        initial_spread=0.0 if text else 2.0,
        fraction=fraction,
        num_clients=num_clients,
        rounds=rounds,
        seed=seed,
        delays=delays,
    )


def svm(
    *,
    strategy: str | Strategy = "afl",
    reading: Reading = "text",
    fraction: float = 0.5,
    num_clients: int = 10,
    rounds: int = 1000,
    seed: int = 0,
    delays: DelayDescription | None = None,
) -> Experiment:
    """The paper's linear SVM: 2,000 samples, d = 10, hinge loss, 100 local epochs, base rate 0.0005, 1,000 rounds.

    `reading="text"` splits by label Dirichlet(0.5); `reading="published"` uses the scripts' per-sample split.

    Args:
        strategy: a strategy, or one by name (see `STRATEGIES`) with the paper's local work.
        reading: "text" or "published", as above.
        fraction: the share of the clients at work at once, above 0 and at most 1.
        num_clients: how many clients there are, 1 or more.
        rounds: how many rounds, 1 or more.
        seed: of everything random.
        delays: the clock; None for the published scripts' laptop.

    Returns:
        The experiment.

    >>> svm().model.loss
    'hinge'
    """
    text = _reads_text(reading)
    return _paper(
        name="svm",
        strategy=strategy,
        data=PaperClassification(),
        split=LabelDirichlet(concentration=0.5, min_size=2) if text else Published(concentration=0.5),
        model=LinearModel(loss="hinge", first_client_batches=None if text else "reshuffled"),
        work=Work(epochs=100, batch_size=32, learning_rate=0.0005),
        initial_spread=0.0,
        fraction=fraction,
        num_clients=num_clients,
        rounds=rounds,
        seed=seed,
        delays=delays,
    )


def _reads_text(reading: str) -> bool:
    if reading not in get_args(Reading):
        raise ConfigError(f'There is no reading "{reading}". {did_you_mean(reading, get_args(Reading))}')
    return reading == "text"


def _paper(
    *,
    name: str,
    strategy: str | Strategy,
    data: DataSource,
    split: Split,
    model: LinearModel,
    work: Work,
    initial_spread: float,
    fraction: float,
    num_clients: int,
    rounds: int,
    seed: int,
    delays: DelayDescription | None,
) -> Experiment:
    if not 0 < fraction <= 1:
        raise ConfigError(f"fraction is {fraction}; it must be above 0 and at most 1.")
    if isinstance(strategy, str):
        tickets = max(1, int(fraction * num_clients))
        strategy = strategy_named(strategy, tickets, work, DelayAware(initial_spread=initial_spread))
    return Experiment(
        name=name,
        seed=seed,
        num_clients=num_clients,
        data=data,
        split=split,
        model=model,
        init="torch",
        strategy=strategy,
        delays=published_laptop() if delays is None else delays,
        budget=Budget(rounds=rounds),
    )
