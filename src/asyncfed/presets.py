"""Ready-made experiments: the paper's two, in the reading of its text or of its published scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import replace, to_plain
from asyncfed.core.types import Budget, Schedule, Strategy, Work
from asyncfed.data import (
    BreastCancer,
    DataSource,
    Diabetes,
    Digits,
    Flights,
    Holdout,
    LabelDirichlet,
    PaperClassification,
    PaperRegression,
    Published,
    QuantileDirichlet,
    Split,
    TableFile,
)
from asyncfed.delays import DelayDescription, Delays, heavy_tailed, published_laptop, stragglers
from asyncfed.experiment import Experiment, changed
from asyncfed.problems.linear import LinearModel
from asyncfed.registry import kinds
from asyncfed.strategies import (
    AFL,
    CyclicWeightTransfer,
    Dispatching,
    FedAsync,
    FedAvg,
    FedBuff,
    PublishedScripts,
)
from asyncfed.strategies.schedules import ConstantRate, DelayAware

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


BUILT_IN: dict[str, tuple[str, DataSource, str]] = {
    "flights": ("flights from New York in 2013, by airline: how late will they arrive?", Flights(), "ridge"),
    "diabetes": ("442 patients: how far does the disease go in a year?", Diabetes(), "ridge"),
    "breast_cancer": ("569 tumours: benign or malignant?", BreastCancer(), "svm"),
    "digits": ("1,797 handwritten digits: a zero or not?", Digits(), "logistic"),
}
"""Data by name: what they are, and the problem they are for."""

PROBLEMS: dict[str, LinearModel] = {
    "least_squares": LinearModel(loss="least_squares"),
    "ridge": LinearModel(loss="least_squares", l2=0.001, penalize_bias=False),
    "logistic": LinearModel(loss="logistic", l2=0.001, penalize_bias=False),
    "svm": LinearModel(loss="hinge", l2=0.001, penalize_bias=False),
    "squared_hinge": LinearModel(loss="squared_hinge", l2=0.001, penalize_bias=False),
}


def table(
    data: str | DataSource,
    *,
    target: str | None = None,
    client_column: str | None = None,
    problem: str | None = None,
    strategy: str | Strategy | None = "fedasync",
    fraction: float = 0.5,
    num_clients: int | None = None,
    rounds: int = 50,
    seed: int = 0,
    delays: DelayDescription | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Experiment:
    """A table of your own, .csv or .parquet, or one of `BUILT_IN`; 15 % of each client's rows validate, 15 % test.

    `problem` is one of `PROBLEMS`. Features are scaled, so that a rate of 0.01 suits most tables; one local epoch a
    ticket. Without `client_column`, rows are assigned at random to `num_clients`, 10 if left out. `settings` are dotted
    keys set anew, such as `{"data.ignore": ["id"]}`, before the clients are counted. With `strategy` None they
    are not counted and the strategy stays the default: choose one with `table_strategy` when the data are prepared.
    """
    chosen, usual = _data_named(data, target, client_column)
    problem = problem or usual
    if problem not in PROBLEMS:
        raise ConfigError(f'There is no problem "{problem}". {did_you_mean(problem, PROBLEMS)}')
    if not 0 < fraction <= 1:
        raise ConfigError(f"fraction is {fraction}; it must be above 0 and at most 1.")
    experiment = Experiment(
        name=data.rpartition("/")[2].partition(".")[0] if isinstance(data, str) else "table",
        seed=seed,
        num_clients=num_clients,
        data=chosen,
        holdout=Holdout(),
        model=PROBLEMS[problem],
        delays=stragglers() if delays is None else delays,
        budget=Budget(rounds=rounds),
    )
    experiment = changed(experiment, dict(settings or {}))
    if strategy is None:
        return experiment
    if isinstance(strategy, str):
        strategy = table_strategy(strategy, fraction, experiment.count_clients())
    return replace(experiment, strategy=strategy)


def table_strategy(name: str, fraction: float, num_clients: int) -> Strategy:
    """The strategy of `table` by its name: one local epoch at a constant rate, `fraction` of the clients at work."""
    return strategy_named(name, max(1, int(fraction * num_clients)), Work(), ConstantRate())


def _data_named(data: str | DataSource, target: str | None, client_column: str | None) -> tuple[DataSource, str]:
    """The data, and the problem they are for."""
    if not isinstance(data, str):
        return data, "ridge"
    if "." in data:
        if target is None:
            raise ConfigError(f"{data} has columns, but which is to be foretold? Name it with --target.")
        return TableFile(path=data, target=target, client_column=client_column), "ridge"
    if data not in BUILT_IN:
        raise ConfigError(
            f'There are no data "{data}". {did_you_mean(data, BUILT_IN)} A table of your own ends in .csv or .parquet.'
        )
    _, chosen, problem = BUILT_IN[data]
    if target is not None:
        raise ConfigError(f'The data "{data}" have a target of their own; leave --target out.')
    if client_column is not None:
        owners = ("carrier", "origin", "dest") if data == "flights" else ()
        if client_column not in owners:
            choice = f"choose from {', '.join(owners)}" if owners else "they name no clients; leave it out"
            raise ConfigError(f'The data "{data}" have no client column "{client_column}": {choice}.')
        chosen = replace(chosen, clients=client_column)
    return chosen, problem


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


# ---- strategies by name --------------------------------------------------------------------------------------

Maker = Callable[[int, Work, Schedule], Strategy]

STRATEGIES: dict[str, tuple[str, Maker]] = {
    "afl": (
        "AFL, mean of every client's latest model (Algorithm 1)",
        lambda tickets, work, rate: AFL(concurrency=tickets, work=work, schedule=rate),
    ),
    "afl_mixing": (
        "AFL, mixing by one half (the published server rule, with clients that download)",
        lambda tickets, work, rate: AFL(concurrency=tickets, aggregate="mixing", work=work, schedule=rate),
    ),
    "afl_delta_mean": (
        "AFL, average of deltas",
        lambda tickets, work, rate: AFL(concurrency=tickets, aggregate="delta_mean", work=work, schedule=rate),
    ),
    "afl_delta_sum": (
        "AFL, sum of deltas (the proofs' rule)",
        lambda tickets, work, rate: AFL(concurrency=tickets, aggregate="delta_sum", work=work, schedule=rate),
    ),
    "sync": (
        "synchronous FL, equal weights, constant rate (the paper's rival)",
        lambda tickets, work, rate: FedAvg(cohort_size=tickets, weighting="equal", work=work),
    ),
    "fedavg": (
        "FedAvg, weights by samples",
        lambda tickets, work, rate: FedAvg(cohort_size=tickets, work=work),
    ),
    "fedprox": (
        "FedProx, proximal term 0.01",
        lambda tickets, work, rate: FedAvg(cohort_size=tickets, work=replace(work, proximal=0.01)),
    ),
    "fedasync": (
        "FedAsync, mixing 0.6 with a polynomial discount",
        lambda tickets, work, rate: FedAsync(concurrency=tickets, work=work),
    ),
    "fedbuff": (
        "FedBuff, a buffer as large as the number in flight, at most 10",
        lambda tickets, work, rate: FedBuff(concurrency=tickets, buffer_size=min(10, tickets), work=work),
    ),
    "cyclic": (
        "Cyclic Weight Transfer",
        lambda tickets, work, rate: CyclicWeightTransfer(round_length=tickets, work=work),
    ),
    "published": (
        "the published scripts, AFL mode: barrier rounds, clients never download, halving",
        lambda tickets, work, rate: PublishedScripts(
            mode="afl", cohort_size=tickets, work=replace(work, start="own"), schedule=rate
        ),
    ),
    "published_sync": (
        "the published scripts, synchronous mode: clients never download, plain mean",
        lambda tickets, work, rate: PublishedScripts(
            mode="sync", cohort_size=tickets, work=replace(work, start="own"), schedule=ConstantRate()
        ),
    ),
}


def strategy_named(name: str, tickets: int, work: Work, rate: Schedule | None = None) -> Strategy:
    """A strategy by its short name, or by its kind if it is registered.

    Args:
        name: one of `STRATEGIES`, or the kind of a registered strategy.
        tickets: how many clients are at work at once, or make a cohort.
        work: what each client is asked to do.
        rate: the paper's schedule of the learning rate, for strategies that use it; None for `DelayAware()`.

    Returns:
        The strategy.

    >>> strategy_named("afl_mixing", 5, Work()).aggregate
    'mixing'
    """
    if name in STRATEGIES:
        return STRATEGIES[name][1](tickets, work, rate or DelayAware())
    registered = kinds("strategy")
    if name not in registered:
        raise ConfigError(f'There is no strategy "{name}". {did_you_mean(name, {**STRATEGIES, **registered})}')
    made: Any = registered[name]
    wanted = {"concurrency": tickets, "cohort_size": tickets, "work": work}
    try:
        named: Strategy = made(**{key: value for key, value in wanted.items() if key in made.__struct_fields__})
    except TypeError as error:
        raise ConfigError(
            f'The strategy "{name}" has settings without a default ({error}). Write it in a TOML file instead.'
        ) from error
    return named


Rate = Literal["same", "own", "constant"]


def strategy_like(name: str, other: Strategy, rate: Rate = "own") -> Strategy:
    """A strategy by its short name, with the local work and the number at work of another one.

    Args:
        name: as for `strategy_named`.
        other: the strategy whose work, number of clients at work and schedule are taken over.
        rate: which schedule of the learning rate it gets: its `own` (the paper's: AFL decays, synchronous FL does not),
            the `same` as the other one, or a `constant` one.

    Returns:
        The strategy.
    """
    tickets, schedule = 1, None
    if isinstance(other, Dispatching):
        tickets, schedule = other.dispatch.tickets, other.schedule
        if other.dispatch.manner == "sequential":
            tickets = other.round_size(num_clients=1)
    work = replace(other.work, start="server") if other.work.start == "own" else other.work
    if rate == "constant":
        schedule = ConstantRate()
    named = strategy_named(name, tickets, work, schedule)
    if rate == "own" or "schedule" not in to_plain(named):
        return named
    return replace(named, schedule=schedule)


DELAYS: dict[str, tuple[str, Callable[[], Delays]]] = {
    "none": ("every ticket takes exactly 1 s", Delays),
    "laptop": ("like the published scripts' laptop: log-normal, milliseconds to half a second", published_laptop),
    "stragglers": ("1 s each, but a fifth of the clients takes 10 s", stragglers),
    "heavy_tailed": ("Pareto with shape 1.1: a few tickets take very long", heavy_tailed),
}


def delays_named(name: str) -> Delays:
    """Ready-made delays by name."""
    if name not in DELAYS:
        raise ConfigError(f'There are no delays "{name}". {did_you_mean(name, DELAYS)}')
    return DELAYS[name][1]()


PRESETS: dict[str, tuple[str, Callable[..., Experiment]]] = {
    "regression": ("the paper's linear regression: 10 clients, 400 rounds of 50 local epochs", regression),
    "svm": ("the paper's linear SVM: 10 clients, 1,000 rounds of 100 local epochs", svm),
}


def preset(name: str) -> Callable[..., Experiment]:
    """The function that makes a preset."""
    if name not in PRESETS:
        raise ConfigError(f'There is no preset "{name}". {did_you_mean(name, PRESETS)}')
    return PRESETS[name][1]
