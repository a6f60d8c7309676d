"""A deliberately unsound configuration of each kind is refused before the run, with the reason."""

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.stopping import Stopping
from asyncfed.experiment import Experiment, from_toml
from asyncfed.privacy import Central, Local, Tree
from asyncfed.problems.trusted_rows import TrustedFile, TrustedRows
from asyncfed.rules import Adam, Clipped, Compared, Median, Noised, NormBounded, Optimised, QFair, Robust, Scaffold
from asyncfed.strategies import AFL, FedAsync, FedAvg, FedBuff, algorithms
from asyncfed.strategies.aflguard import AFLGuard
from asyncfed.strategies.oort import OortSampler
from asyncfed.strategies.samplers import UniformAll
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.uplinks import QSGD, Clip, LocalNoise, SendIf, Zstandard

BUFFERED = FedBuff(concurrency=4, buffer_size=4)
NOISED = Noised(clip=1.0, multiplier=1.0, divisor=4)
MEASURED = Work(start_rms=True)


def refuse(word, mode, strategy=BUFFERED, **settings):
    settings = {"num_clients": 20, "budget": Budget(rounds=12), **settings}
    with pytest.raises(ConfigError, match=word):
        Experiment(strategy=strategy, privacy=mode, **settings)


UNSOUND = {
    "merge on arrival": (FedAsync(concurrency=4), "merges single updates as they arrive"),
    "merge on arrival, in another form": (AFL(concurrency=4), "does not merge such"),
    "a buffer of one": (FedBuff(concurrency=4, buffer_size=1), "a sum of one is that one"),
    "models": (FedAvg(cohort_size=4, weighting="equal"), "merges models"),
    "a denominator that depends on data": (FedAvg(cohort_size=4), "merges models"),
    "weights above 1/K": (FedBuff(concurrency=4, buffer_size=4, server_lr=2.0), "weights up to 0.5"),
    "a server optimiser inside the noise": (
        replace(BUFFERED, rule=replace(NOISED, rule=Optimised(optimiser=Adam()))),
        "privacy puts noise into the rule itself",
    ),
    "adaptive clipping": (replace(BUFFERED, rule=NormBounded()), "norm_bounded, which looks at single updates"),
    "clipping by hand": (replace(BUFFERED, rule=Clipped(norm=1.0)), "which looks at single updates"),
    "a robust rule": (replace(BUFFERED, rule=Robust(aggregator=Median())), "robust, which looks at single updates"),
    "a rule that measures": (replace(BUFFERED, rule=Compared()), "compared, which looks at single updates"),
    "weights by losses": (
        FedBuff(concurrency=4, buffer_size=4, rule=QFair(), work=Work(start_loss=True)),
        "start_loss makes clients report",
    ),
    "a correction that is sent": (replace(BUFFERED, rule=Scaffold()), "scaffold, which looks at single updates"),
    "a sampler that learns": (
        replace(BUFFERED, sampler=OortSampler(), work=MEASURED),
        "start_rms makes clients report",
    ),
    "loss reports": (replace(BUFFERED, work=Work(loss=True)), "loss makes clients report"),
    "patience": (replace(BUFFERED, work=Work(patience=2)), "patience ends a training by the loss"),
    "own models": (replace(BUFFERED, work=Work(start="own")), "goes on from its own model"),
    "a sampler that queues": (replace(BUFFERED, sampler=UniformAll()), "uniform_idle"),
    "sending by events": (replace(BUFFERED, work=Work(uplink=(SendIf(),))), "whether and how much a client sends"),
    "messages whose size tells": (replace(BUFFERED, work=Work(uplink=(Zstandard(),))), "how much a client sends"),
    "noise of the clients' own, of which the file keeps the messages": (
        replace(BUFFERED, work=Work(uplink=(LocalNoise(multiplier=0.0),))),
        "a live run's file keeps for good",
    ),
    "acceptance by comparison": (AFLGuard(concurrency=4), "looks at single updates|does not merge such"),
}


@pytest.mark.parametrize("mode", [Central(epsilon=2.0), Tree(epsilon=2.0, separation=0)], ids=["central", "tree"])
@pytest.mark.parametrize("name", UNSOUND)
def test_noise_at_the_server_refuses(mode, name):
    strategy, word = UNSOUND[name]
    refuse(word, mode, strategy)


@pytest.mark.parametrize(
    ("strategy", "word"),
    [
        (FedAsync(concurrency=4, work=Work(loss=True)), "loss makes clients report"),
        (FedAsync(concurrency=4, work=Work(patience=2)), "patience ends a training"),
        (FedAsync(concurrency=4, sampler=UniformAll()), "uniform_idle"),
        (FedAsync(concurrency=4, work=Work(uplink=(LocalNoise(),))), "adds noise already"),
        (replace(BUFFERED, sampler=OortSampler(), work=MEASURED), "start_rms makes clients report"),
        (AFLGuard(concurrency=4, trusted_client=0), "rows of client 0 at the server"),
    ],
)
def test_noise_at_the_client_refuses(strategy, word):
    refuse(word, Local(epsilon=8.0), strategy)


def test_rows_of_the_servers_own_may_not_be_clients():
    guarded = AFLGuard(concurrency=4, trusted_client="server")
    refuse("drawn from clients'", Local(epsilon=8.0), guarded, trusted=TrustedRows(rows=5))
    own = Experiment(
        num_clients=20,
        budget=Budget(rounds=12),
        strategy=guarded,
        privacy=Local(epsilon=8.0),
        trusted=TrustedFile(file="rows.npz"),
    )
    assert own.privacy_claim().epsilon == pytest.approx(8.0)


@pytest.mark.parametrize("mode", [Central(epsilon=2.0), Tree(epsilon=2.0), Local(epsilon=8.0)])
def test_decisions_by_measurements_on_clients_data(mode):
    refuse("stopping decides by a measurement", mode, stopping=Stopping(metric="objective", target=1.0))
    refuse("drift", mode, evaluation=Evaluation(drift=True))
    said = replace(mode, unprotected_evaluation=True)
    Experiment(
        num_clients=20,
        strategy=BUFFERED,
        privacy=said,
        stopping=Stopping(metric="objective", target=1.0),
        budget=Budget(rounds=12),
    )
    Experiment(num_clients=20, strategy=BUFFERED, privacy=mode, stopping=Stopping(energy=9.0), budget=Budget(rounds=12))


@pytest.mark.parametrize("make", [Central, Tree, Local])
def test_numbers_that_promise_nothing(make):
    with pytest.raises(ConfigError, match="without noise nothing is hidden"):
        make(multiplier=0.0)
    with pytest.raises(ConfigError, match="neither epsilon nor multiplier"):
        make()
    with pytest.raises(ConfigError, match="No amplification can be claimed"):
        make(epsilon=2.0, sampling_rate=0.01)
    refuse("well below 1 / number of clients", make(epsilon=2.0, delta=0.05))
    refuse("costs a client epsilon", make(epsilon=0.1, multiplier=1.0))


def test_caps_and_trees_that_do_not_fit_the_budget():
    refuse("participations is 13, but the budget allows 12", Central(epsilon=2.0, participations=13))
    refuse("participations is 0", Central(epsilon=2.0, participations=0))
    refuse("the tree would be full", Tree(epsilon=2.0, releases=11))
    refuse("participations is 7, but the budget allows 6", Tree(epsilon=2.0, participations=7, separation=1))
    refuse("24 clients are needed and there are 20", Central(epsilon=2.0, separation=5))
    refuse("does not follow from the budget", Central(epsilon=2.0), budget=Budget(elapsed=9.0))
    refuse("the budget has neither", Tree(epsilon=2.0), budget=Budget(elapsed=9.0))
    refuse("uploads is not set", Local(epsilon=2.0), budget=Budget(elapsed=9.0))


def test_clipping_before_a_codec_alone_is_refused_where_noise_is_put_by_hand():
    strategy = replace(BUFFERED, rule=NOISED, work=Work(uplink=(Clip(norm=1.0), QSGD())))
    with pytest.raises(ConfigError, match="nothing clips them"):
        strategy.check(20)


def test_unknown_modes_name_the_nearest():
    with pytest.raises(ConfigError, match=r'privacy.kind is "centrel", which does not exist.*central'):
        from_toml('num_clients = 20\nprivacy = {kind = "centrel", epsilon = 2.0}')


def test_every_shipped_algorithm_is_made_private_or_refused_with_a_reason():
    """No other error, and what passes merges sums of changes with weights of at most 1/K."""
    passed = set()
    for name, algorithm in algorithms().items():
        strategy = algorithm.make(4, Work(), ConstantRate())
        try:
            Experiment(num_clients=20, strategy=strategy, privacy=Central(epsilon=2.0), budget=Budget(rounds=12))
            passed.add(name)
        except ConfigError:
            continue
    assert "fedbuff" in passed
    assert not passed & {"fedavg", "fedasync", "afl", "oort", "qfair", "scaffold", "kardam", "zeno"}
