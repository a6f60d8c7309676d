"""What --robust puts in, and what it refuses."""

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.presets import STRATEGIES, make_robust, strategy_named
from asyncfed.rules import Compared, LatestModels, Momentum, Noised, Optimised, Robust
from asyncfed.rules.aggregators import Ctma, GeometricMedian
from asyncfed.strategies import AFL, FedBuff


@pytest.mark.parametrize(("clients", "liars"), [(3, 1), (4, 1), (5, 1), (7, 2), (10, 3), (100, 33)])
def test_a_third_of_the_clients_may_lie(clients, liars):
    strategy, words = make_robust(FedBuff(), clients)
    assert strategy == FedBuff(rule=Compared(liars=liars))
    assert f"all {clients} clients; up to {liars} liar" in words


@pytest.mark.parametrize("clients", [1, 2])
def test_of_two_that_disagree_nobody_can_say_who_lies(clients):
    with pytest.raises(ConfigError, match=f"at least 3 clients, and there are {clients}"):
        make_robust(AFL(), clients)


@pytest.mark.parametrize("liars", [0, 2])
def test_the_honest_ones_have_to_be_more(liars):
    with pytest.raises(ConfigError, match="it can be 1 to 1"):
        make_robust(AFL(), 4, liars)
    assert make_robust(FedBuff(), 10, 4)[0].rule.liars == 4


def test_of_latest_models_those_that_stand_out_are_left_out():
    rule = LatestModels(aggregator=Ctma(anchor=GeometricMedian(), liars=2, factor=3.0))
    assert make_robust(AFL(), 7)[0] == AFL(rule=rule)
    assert isinstance(
        make_robust(AFL(weighting="samples"), 7)[0].rule, Compared
    )  # a client counts by its samples there
    assert isinstance(make_robust(AFL(aggregate="delta_mean"), 7)[0].rule, Compared)


def test_it_goes_around_the_rule_that_is_there():
    rule = Optimised(optimiser=Momentum())
    assert make_robust(FedBuff(rule=rule), 10)[0].rule == Compared(rule=rule, liars=3)


@pytest.mark.parametrize(
    "rule",
    [Robust(), Compared(), LatestModels(), Optimised(rule=Robust())],
    ids=["robust", "compared", "models", "inside"],
)
def test_a_second_defence_is_refused(rule):
    with pytest.raises(ConfigError, match="a defence already"):
        make_robust(FedBuff(rule=rule), 10)


def test_noise_for_privacy_is_refused():
    with pytest.raises(ConfigError, match="adds noise for their privacy"):
        make_robust(FedBuff(rule=Noised(clip=1.0, multiplier=1.0, divisor=5)), 10)


WITHOUT_RULE = {
    *("published", "published_sync", "cyclic", "asyncfeded", "port", "fedfa", "ringleader", "safa", "fedat"),
    *("zeno", "aflguard", "kardam", "kardam_code", "basgd"),
}


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name not in WITHOUT_RULE])
def test_every_named_strategy_that_takes_a_rule_is_defended(name):
    strategy = strategy_named(name, 5, Work())
    defended, _ = make_robust(strategy, 10)
    defended.check(10)
    assert defended != strategy


@pytest.mark.parametrize("name", sorted(WITHOUT_RULE))
def test_one_that_takes_none_is_refused(name):
    with pytest.raises(ConfigError, match="robust needs a strategy that takes a rule"):
        make_robust(strategy_named(name, 5, Work()), 10)
