"""What a strategy refuses, and whether its message says the value, the limit and the next step."""

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import ValidationError, from_plain, to_plain
from asyncfed.core.types import Work
from asyncfed.strategies import (
    AFL,
    CyclicWeightTransfer,
    FedAsync,
    FedAvg,
    FedBuff,
    PublishedScripts,
    Strategy,
    fedprox,
)
from asyncfed.strategies.samplers import UniformAll, Weighted


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AFL(mixing=0.0), r"strategy\.mixing is 0\.0; it must be above 0 and at most 1"),
        (lambda: AFL(aggregate="mixing", mixing=1.5), r"strategy\.mixing is 1\.5"),
        (
            lambda: AFL(aggregate="mixing", weighting="samples"),
            r'weighting is "samples", but mixing has a fixed weight',
        ),
        (lambda: AFL(when_stale="wait"), r'when_stale is "wait" without a bound; set strategy\.max_staleness'),
        (lambda: AFL(max_staleness=-1), r"max_staleness is -1; it must be 0 or more"),
        (lambda: FedAsync(mixing=float("nan")), r"strategy\.mixing is nan"),
        (lambda: FedBuff(server_lr=0.0), r"strategy\.server_lr is 0\.0; it must be a positive number"),
        (lambda: FedBuff(server_lr=float("inf")), r"strategy\.server_lr is inf"),
        (lambda: FedBuff(buffer_size=0), r"strategy\.buffer_size is 0; a buffer holds at least 1"),
        (lambda: CyclicWeightTransfer(round_length=0), r"strategy\.round_length is 0"),
    ],
)
def test_impossible_settings_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


CROWDED = [
    (AFL(concurrency=4), "concurrency"),
    (FedAsync(concurrency=4), "concurrency"),
    (FedBuff(concurrency=4), "concurrency"),
    (FedAvg(cohort_size=4), "cohort_size"),
    (PublishedScripts(cohort_size=4), "cohort_size"),
]


@pytest.mark.parametrize(("strategy", "field"), CROWDED)
def test_more_tickets_than_clients_are_refused(strategy, field):
    strategy.check(4)
    with pytest.raises(ConfigError, match=rf"strategy\.{field} is 4, but there are only 3 clients.*Set {field} to at"):
        strategy.check(3)


def test_nobody_at_work_is_refused():
    with pytest.raises(ConfigError, match=r"strategy\.concurrency is 0; at least 1 client must be at work"):
        AFL(concurrency=0).check(3)


def test_a_queueing_sampler_lifts_the_limit():
    AFL(concurrency=9, sampler=UniformAll()).check(3)
    FedAvg(cohort_size=9, sampler=Weighted(weights=(1.0,), busy="queue")).check(3)


@pytest.mark.parametrize(
    "strategy",
    [
        PublishedScripts(cohort_size=2, sampler=UniformAll()),
        AFL(concurrency=2, sampler=UniformAll(), work=Work(start="own")),
    ],
)
def test_busy_clients_cannot_be_trained_from_their_own_model(strategy):
    with pytest.raises(ConfigError, match=r'Use the sampler uniform_idle, or work\.start = "server"'):
        strategy.check(3)


def test_fedprox_is_fedavg_with_a_proximal_term():
    strategy = fedprox(cohort_size=3, proximal=0.5, work=Work(epochs=7))
    assert strategy == FedAvg(cohort_size=3, work=Work(epochs=7, proximal=0.5))


@pytest.mark.parametrize("strategy", [*[s for s, _ in CROWDED], CyclicWeightTransfer(round_length=3)])
def test_the_written_form_is_read_back_to_the_same_strategy(strategy):
    assert from_plain(to_plain(strategy), Strategy) == strategy


def test_an_unknown_setting_is_refused_when_read():
    with pytest.raises(ValidationError, match="concurency"):
        from_plain({"kind": "afl", "concurency": 3}, Strategy)
