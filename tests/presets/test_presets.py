"""The paper's experiments have the paper's constants."""

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.data import LabelDirichlet, PaperClassification, PaperRegression, Published, QuantileDirichlet
from asyncfed.delays import Constant, Delays, published_laptop
from asyncfed.presets import (
    DELAYS,
    STRATEGIES,
    delays_named,
    preset,
    regression,
    strategy_like,
    strategy_named,
    svm,
    unequal,
)
from asyncfed.rules import Scaffold
from asyncfed.strategies import (
    AFL,
    AFLGuard,
    CyclicWeightTransfer,
    FedAsync,
    FedAvg,
    FedBuff,
    FedCompass,
    PublishedScripts,
    Ringmaster,
)
from asyncfed.strategies.schedules import ConstantRate, DelayAware

PAPER = {
    regression: (PaperRegression, 50, 0.001, 400, "least_squares", QuantileDirichlet),
    svm: (PaperClassification, 100, 0.0005, 1000, "hinge", LabelDirichlet),
}


@pytest.mark.parametrize(("make", "constants"), PAPER.items(), ids=["regression", "svm"])
def test_the_constants_of_the_paper(make, constants):
    data, epochs, rate, rounds, loss, split = constants
    experiment = make()
    assert experiment.num_clients == 10
    assert isinstance(experiment.data, data)
    table = experiment.data.generate(0, "float64")
    assert (table.num_rows, table.num_features) == (2000, 10)
    assert experiment.model.loss == loss
    assert isinstance(experiment.split, split)
    assert experiment.split.concentration == 0.5
    assert experiment.init == "torch"
    assert experiment.budget == Budget(rounds=rounds)
    assert experiment.delays == published_laptop()
    assert experiment.strategy.work == Work(epochs=epochs, batch_size=32, learning_rate=rate)
    assert experiment.strategy.schedule == DelayAware(delay_penalty=0.01, over="epoch", initial_spread=0.0)


def test_the_readings_differ_as_the_scripts_do():
    text, scripts = regression(), regression(reading="published", strategy="published")
    assert (text.model.loss, scripts.model.loss) == ("least_squares", "mse")
    assert scripts.split == svm(reading="published").split == Published(concentration=0.5)
    assert scripts.strategy.schedule.initial_spread == 2.0
    assert svm(reading="published", strategy="published").strategy.schedule.initial_spread == 0.0
    assert scripts.strategy.work.start == "own"
    sync = regression(reading="published", strategy="published_sync").strategy
    assert (sync.mode, sync.schedule) == ("sync", ConstantRate())


@pytest.mark.parametrize(
    ("fraction", "clients", "crowd"),
    [(0.2, 10, 2), (0.5, 10, 5), (0.9, 10, 9), (1.0, 10, 10), (0.01, 10, 1), (0.5, 3, 1), (0.29, 100, 28)],
)
def test_a_fraction_of_the_clients_is_rounded_as_in_the_scripts(fraction, clients, crowd):
    assert crowd == max(1, int(fraction * clients))
    assert regression(fraction=fraction, num_clients=clients).strategy.concurrency == crowd
    assert svm(fraction=fraction, num_clients=clients, strategy="sync").strategy.cohort_size == crowd


@pytest.mark.parametrize("fraction", [0.0, -0.5, 1.01, float("nan")])
def test_a_fraction_outside_its_range_is_refused(fraction):
    with pytest.raises(ConfigError, match=rf"fraction is {fraction}; it must be above 0 and at most 1"):
        regression(fraction=fraction)


@pytest.mark.parametrize("make", [regression, svm])
def test_a_reading_that_does_not_exist_is_refused(make):
    with pytest.raises(ConfigError, match=r'no reading "txt". Did you mean "text"'):
        make(reading="txt")


def test_what_is_asked_for_is_taken():
    delays = Delays(compute=Constant(value=2.0))
    experiment = regression(strategy=FedAsync(concurrency=3), rounds=7, seed=5, num_clients=20, delays=delays)
    assert experiment.strategy == FedAsync(concurrency=3)
    assert (experiment.budget.rounds, experiment.seed, experiment.num_clients) == (7, 5, 20)
    assert experiment.delays == delays


# ---- strategies by name ----------------------------------------------------------------------------------------

WORK = Work(epochs=2, learning_rate=0.5)
RATE = DelayAware(delay_penalty=0.3)
NAMED = {
    "afl": AFL(concurrency=12, aggregate="latest", work=WORK, schedule=RATE),
    "afl_mixing": AFL(concurrency=12, aggregate="mixing", work=WORK, schedule=RATE),
    "afl_delta_mean": AFL(concurrency=12, aggregate="delta_mean", work=WORK, schedule=RATE),
    "afl_delta_sum": AFL(concurrency=12, aggregate="delta_sum", work=WORK, schedule=RATE),
    "sync": FedAvg(cohort_size=12, weighting="equal", work=WORK),
    "fedavg": FedAvg(cohort_size=12, weighting="samples", work=WORK),
    "fedprox": FedAvg(cohort_size=12, work=replace(WORK, proximal=0.01)),
    "fedasync": FedAsync(concurrency=12, work=WORK),
    "scaffold_async": FedAsync(concurrency=12, mixing=0.4, work=WORK, schedule=RATE, rule=Scaffold()),
    "scaffold": FedAvg(cohort_size=12, weighting="equal", work=WORK, schedule=RATE, rule=Scaffold()),
    "fedbuff": FedBuff(concurrency=12, buffer_size=10, work=WORK),
    "fedcompass": FedCompass(work=WORK),
    "ringmaster": Ringmaster(concurrency=12, staleness_threshold=12, server_lr=1 / 12, work=WORK),
    "aflguard": AFLGuard(concurrency=12, train_trusted=True, server_lr=1 / 12, work=WORK),
    "cyclic": CyclicWeightTransfer(round_length=12, work=WORK),
    "published": PublishedScripts(cohort_size=12, work=replace(WORK, start="own"), schedule=RATE),
    "published_sync": PublishedScripts(
        mode="sync", cohort_size=12, work=replace(WORK, start="own"), schedule=ConstantRate()
    ),
}


@pytest.mark.parametrize("name", sorted(STRATEGIES.keys() - NAMED.keys()))
def test_every_other_name_takes_the_work_and_fits_the_clients(name):
    strategy = strategy_named(name, 12, WORK, RATE)
    assert strategy.work.learning_rate == WORK.learning_rate
    strategy.check(12)


@pytest.mark.parametrize("name", NAMED)
def test_a_strategy_by_its_name(name):
    assert strategy_named(name, 12, WORK, RATE) == NAMED[name]


@pytest.mark.parametrize("name", NAMED)
def test_a_strategy_like_another_has_its_work_and_its_crowd(name):
    for other in NAMED.values():
        like = strategy_like(name, other, "constant")
        assert like.schedule == ConstantRate()
        assert (like.work.epochs, like.work.learning_rate) == (2, 0.5)
        assert like.work.start == ("own" if name.startswith("published") else "server")
        like.check(12)


def test_the_rate_of_a_strategy_like_another():
    decaying, sync = NAMED["afl"], NAMED["sync"]
    assert strategy_like("sync", decaying, "same").schedule == RATE
    assert strategy_like("sync", decaying, "own").schedule == ConstantRate()
    assert strategy_like("afl", decaying, "own").schedule == RATE
    assert strategy_like("afl", sync, "same").schedule == ConstantRate()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: preset("regresion"), r'no preset "regresion". Did you mean "regression"\?'),
        (lambda: strategy_named("fedbuf", 1, WORK), r'no strategy "fedbuf". Did you mean "fedbuff"\?'),
        (
            lambda: delays_named("zzz"),
            r'no delays "zzz". Known: cluster, heavy_tailed, hospital, laptop, none, phones, ',
        ),
        (lambda: regression(strategy="zzz"), r'no strategy "zzz". Known: .*afl'),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(call, words):
    with pytest.raises(ConfigError, match=words):
        call()


@pytest.mark.parametrize("name", DELAYS)
def test_delays_by_name_can_be_bound(name):
    timing = delays_named(name).bind(5, 0).timing(1, 2, WORK, 10)
    assert timing.compute > 0


def test_unequal_clients_differ_in_data_and_speed():
    experiment = unequal(rounds=2)
    problem = experiment.problem()
    common = problem.optimum()
    for client in range(problem.num_clients):
        own = problem.client_optimum(client)
        assert problem.client_loss(own, client) < 0.1 * problem.client_loss(common, client)
    assert experiment.strategy.concurrency == 10
    with pytest.raises(ConfigError, match="--reading is about the paper's experiments"):
        unequal(reading="text")
    with pytest.raises(ConfigError, match="fraction is 0"):
        unequal(fraction=0.0)
