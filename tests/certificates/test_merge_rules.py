"""Which rule, step, staleness and round size each shipped strategy has in the words of the theory."""

import pytest

from asyncfed import registry
from asyncfed.certificates.merge_rules import RULES, declared_staleness, round_size, server_rule, strategy_name
from asyncfed.core.record import to_plain
from asyncfed.core.types import Work
from asyncfed.strategies import (
    AFL,
    AFLGuard,
    CyclicWeightTransfer,
    FedAsync,
    FedAvg,
    FedBuff,
    FedCompass,
    Malenia,
    MindFlayer,
    PublishedScripts,
    Rennala,
    Ringleader,
    Ringmaster,
    algorithms,
)
from asyncfed.strategies.discounts import NoDiscount
from asyncfed.strategies.samplers import UniformAll
from asyncfed.strategies.schedules import ConstantRate


@pytest.mark.parametrize(
    ("strategy", "form", "step", "cohort", "fresh"),
    [
        (AFL(aggregate="latest"), "latest", 1.0, 1, False),
        (AFL(aggregate="mixing", mixing=0.3), "models", 0.3, 1, False),
        (AFL(aggregate="delta_mean", concurrency=4), "deltas", 0.25, 1, False),
        (AFL(aggregate="delta_sum", concurrency=4), "deltas", 1.0, 1, False),
        (AFL(aggregate="delta_sum", concurrency=4, max_staleness=0, when_stale="wait"), "deltas", 4.0, 4, True),
        (AFL(aggregate="delta_mean", concurrency=4, max_staleness=0, when_stale="wait"), "deltas", 1.0, 4, True),
        (AFL(aggregate="mixing", concurrency=1), "models", 0.5, 1, True),
        (FedAvg(cohort_size=3), "models", 1.0, 3, True),
        (FedAvg(cohort_size=3, sampler=UniformAll()), "models", 1.0, 3, False),
        (FedAsync(concurrency=1, mixing=0.6), "models", 0.6, 1, True),
        (FedBuff(buffer_size=7, server_lr=0.5), "deltas", 0.5, 7, False),
        (CyclicWeightTransfer(), "models", 1.0, 1, False),
        (FedCompass(), None, 1.0, 1, False),
        (AFLGuard(server_lr=0.5), None, 0.5, 1, False),
        (Ringmaster(server_lr=0.5), "deltas", 0.5, 1, False),
        (Rennala(changes_per_step=4, server_lr=0.5), "deltas", 0.5, 4, False),
        (Malenia(), None, 1.0, 1, False),
        (Ringleader(), None, 1.0, 1, False),
        (MindFlayer(), None, 1.0, 1, False),
        (PublishedScripts(cohort_size=5), None, 1.0, 5, False),
    ],
)
def test_form_step_and_drawing(strategy, form, step, cohort, fresh):
    rule = server_rule(strategy, same_sizes=True)
    assert (rule.form, rule.server_step, rule.cohort_size, rule.fresh_cohorts) == (form, step, cohort, fresh)


def test_every_algorithm_with_a_certificate_has_an_entry_and_every_entry_is_shipped():
    certified = {type(a.make(3, Work(), ConstantRate())) for a in algorithms().values() if a.certificate}
    alone = {kind for kind in registry.kinds("strategy").values() if "strategy" not in kind.__struct_fields__}
    assert certified <= set(RULES) <= alone


def test_updates_that_count_differently_are_marked():
    assert server_rule(AFL(aggregate="mixing")).constant_weight
    assert not server_rule(AFL(aggregate="mixing", weighting="inverse_participation")).constant_weight
    assert not server_rule(AFL(aggregate="delta_mean", max_staleness=2, when_stale="damp")).constant_weight
    assert not server_rule(AFL(aggregate="delta_mean", max_staleness=2, when_stale="wait")).constant_weight
    assert not server_rule(FedAvg(weighting="samples")).constant_weight
    assert server_rule(FedAvg(weighting="samples"), same_sizes=True).constant_weight
    assert not server_rule(FedBuff()).constant_weight
    assert server_rule(FedBuff(discount=NoDiscount())).constant_weight


@pytest.mark.parametrize(
    ("strategy", "bound"),
    [
        (FedAvg(), 0),
        (CyclicWeightTransfer(), 0),
        (FedAsync(), None),
        (FedAsync(concurrency=1), 0),
        (AFL(), None),
        (AFL(max_staleness=3), 3),
        (AFL(max_staleness=3, when_stale="wait"), 3),
        (AFL(max_staleness=3, when_stale="damp"), None),
        (FedBuff(), None),
        (Ringmaster(staleness_threshold=4), 3),
        (Rennala(), 0),
        (Malenia(), 0),
        (MindFlayer(), 0),
        (Ringleader(), 8),  # 2n - 2
        (FedCompass(), None),
        (AFLGuard(), None),
        (PublishedScripts(), None),
    ],
)
def test_only_an_enforced_staleness_is_declared(strategy, bound):
    assert declared_staleness(strategy, 5) == bound


@pytest.mark.parametrize(
    ("strategy", "size"),
    [
        (AFL(concurrency=4), 4),
        (FedAvg(cohort_size=3), 3),
        (FedBuff(concurrency=4, buffer_size=7), 7),
        (CyclicWeightTransfer(), 10),
        (FedCompass(), 10),
        (CyclicWeightTransfer(round_length=2), 2),
    ],
)
def test_how_many_updates_make_a_round(strategy, size):
    assert round_size(strategy, 10) == size


class Unregistered:
    """Not even a record."""


def test_of_a_strategy_of_ones_own_nothing_is_claimed():
    rule = server_rule(Unregistered())
    assert (rule.name, rule.form, rule.fresh_cohorts) == ("Unregistered", None, False)
    assert declared_staleness(Unregistered(), 5) is None
    assert round_size(Unregistered(), 10) == 10


def test_strategies_are_called_by_their_kind():
    assert strategy_name(FedAvg()) == to_plain(FedAvg())["kind"] == "fedavg"
