"""Secure sums in whole runs: what is refused before them, their limits, their bytes, and that they repeat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Work
from asyncfed.experiment import changed, from_toml, to_toml
from asyncfed.presets.named_strategies import strategy_named
from asyncfed.rules import (
    Clipped,
    Fadas,
    FedNova,
    FixedPointSum,
    Mean,
    Median,
    Noised,
    NormBounded,
    Optimised,
    Robust,
    SecureAggregation,
)
from asyncfed.strategies import AFL, BoundedStaleness, FedAsync, FedAvg, FedBuff
from asyncfed.strategies.algorithm import algorithms
from asyncfed.strategies.fedat import FedAT
from asyncfed.strategies.secure_sums import with_secure_sums
from asyncfed.strategies.single_updates import why_single_updates
from asyncfed.uplinks import Clip, ErrorFeedback, TopK

WORK = Work(epochs=2, batch_size=4, learning_rate=0.005)
BUFFER = FedBuff(concurrency=4, buffer_size=3, work=WORK)
SECURE = SecureAggregation(bits=62)
NOISED = Noised(clip=0.5, multiplier=0.1, divisor=3)
PRIVATE = replace(BUFFER, work=replace(WORK, uplink=(Clip(norm=0.5),)), rule=NOISED)


def experiment(strategy: Any, secure: Any = SECURE, **how: Any) -> af.Experiment:
    settings: dict[str, Any] = {
        "num_clients": 8,
        "data": af.data.PaperRegression(num_samples=160),
        "delays": replace(af.delays.heavy_tailed(), dropout=0.05),
        "budget": af.Budget(updates=60),
        "strategy": strategy,
    }
    return af.Experiment(**{**settings, **({} if secure is None else {"secure_aggregation": secure}), **how})


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "why"),
    [
        (AFL(), "as they arrive"),
        (FedAsync(), "as they arrive"),
        (replace(BUFFER, rule=Robust(aggregator=Median())), "Robust, needs to see them"),
        (replace(BUFFER, rule=Clipped(norm=1.0)), "Clipped, needs to see them"),
        (replace(BUFFER, rule=NormBounded()), "NormBounded, needs to see them"),
        (replace(BUFFER, rule=Optimised(rule=Clipped(norm=1.0))), "fedbuff needs .* rule, Clipped, needs to see them"),
        (BoundedStaleness(strategy=AFL(), max_staleness=3), "afl needs single updates"),
        (replace(BUFFER, work=Work(loss=True)), "work.loss makes clients report"),
        (replace(BUFFER, work=Work(uplink=(TopK(),))), "TopK, whose messages are something else"),
        (replace(BUFFER, work=Work(uplink=(ErrorFeedback(codec=TopK()),))), "ErrorFeedback, whose messages"),
        (FedAT(tiers=2, cohort_size=2), "takes none"),
        (replace(FedAvg(), work=Work(start="own")), r'it is "own"'),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)
def test_what_needs_single_updates_is_refused_before_the_run(strategy: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        experiment(strategy)


def test_robust_by_default_is_refused() -> None:
    from asyncfed.presets.robust_defaults import make_robust

    with pytest.raises(ConfigError, match="Compared, needs to see them"):
        experiment(make_robust(BUFFER, 8)[0])


def test_every_algorithm_that_does_with_sums_takes_them_and_no_other() -> None:
    for name in algorithms():
        strategy: Any = strategy_named(name, 10, Work())
        if why_single_updates(strategy) is not None:
            with pytest.raises(ConfigError, match="needs single updates"):
                with_secure_sums(strategy, SECURE)
        elif name not in ("fedat", "published_sync"):  # the sums of a tier, and of clients' own models: not simulated
            with_secure_sums(strategy, SECURE).check(20)


def test_noise_for_privacy_needs_sums_that_it_covers() -> None:
    with pytest.raises(ConfigError, match='rounding to "toward_zero"'):
        experiment(PRIVATE)
    with pytest.raises(ConfigError, match="leave fraction_bits out"):
        experiment(PRIVATE, replace(SECURE, rounding="toward_zero", fraction_bits=20))
    experiment(PRIVATE, replace(SECURE, rounding="toward_zero"))


def test_the_sum_goes_in_the_place_of_the_innermost_mean() -> None:
    rule: Any = with_secure_sums(replace(BUFFER, rule=Optimised(rule=FedNova())), SECURE).rule  # type: ignore[attr-defined]
    assert rule == Optimised(rule=FedNova(rule=FixedPointSum(settings=SECURE, members=3)))
    around: Any = with_secure_sums(BoundedStaleness(strategy=BUFFER, max_staleness=3), SECURE)
    assert around.strategy.rule.rule == Mean()


# ---- runs ------------------------------------------------------------------------------------------------------------

CASES = {
    "buffer": BUFFER,
    "cohort": FedAvg(cohort_size=3, work=WORK),
    "optimised": replace(BUFFER, rule=Optimised()),
    "fadas": replace(BUFFER, rule=Fadas(staleness_threshold=1)),
    "fednova": FedAvg(cohort_size=4, work=WORK, rule=FedNova()),
    "noised": PRIVATE,
    "bounded": BoundedStaleness(strategy=BUFFER, max_staleness=4),
}


@pytest.mark.parametrize("strategy", CASES.values(), ids=CASES)
def test_with_enough_bits_it_is_the_plain_run(strategy: Any) -> None:
    secure = replace(SECURE, limit=100.0, rounding="toward_zero", threshold=0.0)
    plain = af.run(experiment(strategy, None, delays=af.delays.heavy_tailed()))
    secured = af.run(experiment(strategy, secure, delays=af.delays.heavy_tailed()))
    np.testing.assert_allclose(secured.params, plain.params, rtol=0, atol=1e-12)


def test_it_is_the_same_run_interrupted_threaded_and_replayed(tmp_path: Path, run_in_pieces: Any) -> None:
    secure = SecureAggregation(bits=10, rounding="stochastic", dropout=0.2, threshold=0.6)
    base = experiment(replace(BUFFER, rule=Optimised()), secure)
    run = af.run(base, out=tmp_path / "whole.sqlite", threads=1)
    assert run.sha256 == af.run(base, threads=2).sha256
    assert af.verify(tmp_path / "whole.sqlite").ok
    assert run_in_pieces(base, tmp_path / "pieces.sqlite", arrivals=7).sha256 == run.sha256
    found = "".join(json.dumps(row) for row in run.journal.event_rows())
    assert "dropped_out" in found
    assert "group_lost" in found


def test_it_is_written_as_toml_and_set_by_dotted_keys() -> None:
    base = experiment(BUFFER)
    assert from_toml(to_toml(base)) == base
    assert "secure_aggregation" not in to_toml(experiment(BUFFER, None))
    assert changed(experiment(BUFFER, None), {"secure_aggregation.bits": 24}).secure_aggregation == SecureAggregation(
        bits=24
    )


def test_uploads_count_as_the_protocol_has_them() -> None:
    secure = SecureAggregation(bits=12, bytes_per_member=50)
    plain, secured = af.run(experiment(BUFFER, None)), af.run(experiment(BUFFER, secure))
    up = -(-plain.params.size * 12 // 8) + 3 * 50
    assert int(secured.rounds["bytes_up"][-1]) == int(plain.rounds["bytes_up"][-1]) // plain.params.nbytes * up


def test_slow_links_take_the_time_of_these_uploads() -> None:
    delays = af.delays.Delays(compute=af.delays.Constant(value=1.0), bandwidth_up=af.delays.Constant(value=10.0))
    rounds = {"delays": delays, "budget": af.Budget(rounds=4)}
    cohort = FedAvg(cohort_size=4, work=WORK)
    plain = af.run(experiment(cohort, None, **rounds))
    secured = af.run(experiment(cohort, SecureAggregation(bits=8, bytes_per_member=25), **rounds))
    num_params = plain.params.size
    assert plain.evaluations["elapsed"][-1] == pytest.approx(4 * (1.0 + 8 * num_params / 10.0))
    assert secured.evaluations["elapsed"][-1] == pytest.approx(4 * (1.0 + (num_params + 4 * 25) / 10.0))
