"""Clip at the client, noise at the flush: the noise is what is said, and what would be unsound is refused."""

from itertools import pairwise

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Merge, Work
from asyncfed.kernels.keyed_normals import keyed_normals
from asyncfed.rules import Adam, Arrival, Clipped, Mean, Noised, Optimised
from asyncfed.strategies import AFL, FedAsync, FedAvg, FedBuff
from asyncfed.uplinks import EF21, Clip, TopK

NOISED = Noised(clip=0.5, multiplier=2.0, divisor=4)
CLIPPED = Work(epochs=2, batch_size=8, learning_rate=0.05, uplink=(Clip(norm=0.5),))


def merge_of(*arrivals):
    return Merge(tuple(a.ticket for a in arrivals), tuple(a.weight for a in arrivals))


def arrival(ticket, change, client=None, weight=0.25, dtype=float):
    start = np.zeros(np.size(change), dtype)
    model = start + np.asarray(change, dtype)
    return Arrival(ticket, ticket if client is None else client, weight, 0, CLIPPED, 1, 1, start, model)


def step(rule, arrivals, params=None, key=7):
    params = np.zeros(arrivals[0].model.size) if params is None else params
    return rule.step(rule.init(params, 4), params, arrivals, merge_of(*arrivals), key)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_noise_of_a_merge_is_z_c_over_k(dtype):
    arrivals = [arrival(ticket, np.full(100_000, 1e-3), dtype=dtype) for ticket in range(4)]
    params, memory, info = step(NOISED, arrivals, np.zeros(100_000, dtype))
    noise = params.astype(float) - 1e-3
    assert params.dtype == dtype
    assert noise.std() == pytest.approx(2.0 * 0.5 / 4, rel=0.01)
    assert abs(noise.mean()) < 4 * 0.25 / np.sqrt(noise.size)
    assert noise == pytest.approx(0.25 * keyed_normals(7, 100_000), abs=1e-6)
    assert (memory, info) == ({}, {})


def test_it_depends_on_the_key_alone():
    arrivals = [arrival(0, [0.1, 0.2])]
    one, again, other = (step(NOISED, arrivals, key=key)[0] for key in (7, 7, 8))
    assert one.tobytes() == again.tobytes()
    assert not np.any(one == other)
    assert NOISED.draws_noise
    assert Optimised(rule=NOISED).draws_noise


def test_without_noise_it_is_the_wrapped_rule():
    arrivals = [arrival(ticket, [0.1 * ticket, -0.3]) for ticket in range(4)]
    quiet = step(replace(NOISED, multiplier=0.0), arrivals)[0]
    assert quiet.tobytes() == step(Mean(), arrivals)[0].tobytes()


def test_a_client_counts_once_however_often_it_is_in_a_merge():
    quiet = replace(NOISED, multiplier=0.0)
    params, _, _ = step(quiet, [arrival(0, [0.5], 3), arrival(1, [0.25], 3), arrival(2, [-0.5], 1)])
    assert params.tolist() == [0.25 * (0.375 - 0.5)]


# ---- what is refused --------------------------------------------------------------------------------------------


def test_changes_that_nobody_clips_are_refused_before_the_run():
    for work in (Work(), replace(CLIPPED, uplink=(Clip(norm=0.6),)), replace(CLIPPED, uplink=(Clip(norm=0.5), TopK()))):
        with pytest.raises(ConfigError, match=r"noise for changes of norm 0\.5, but nothing clips.*Clip\(norm=0\.5\)"):
            NOISED.check(work)
        with pytest.raises(ConfigError, match="nothing clips"):
            FedBuff(work=work, rule=NOISED).check(10)
        replace(NOISED, rule=Clipped(norm=0.5)).check(work)
    NOISED.check(CLIPPED)
    NOISED.check(replace(CLIPPED, uplink=(TopK(), Clip(norm=0.25))))
    Optimised(rule=NOISED).check(CLIPPED)


@pytest.mark.parametrize("rule", [Optimised(), Clipped(rule=Optimised(optimiser=Adam())), NOISED], ids=str)
def test_rules_that_are_no_weighted_sum_are_refused(rule):
    with pytest.raises(ConfigError, match="which is no weighted sum of changes"):
        replace(NOISED, rule=rule).check(CLIPPED)


def test_merges_of_models_are_refused():
    for strategy in (FedAvg(cohort_size=4), FedAsync(concurrency=4)):
        with pytest.raises(ConfigError, match="noise for a sum of changes; use a strategy with such, as FedBuff is"):
            af.run(experiment(replace(strategy, rule=NOISED, work=CLIPPED)))


def test_weights_above_one_over_k_are_refused():
    with pytest.raises(ConfigError, match=r"weights from 0 to 1/4, but a merge has \(0\.5,\)"):
        step(NOISED, [arrival(0, [0.1], weight=0.5)])
    with pytest.raises(ConfigError, match=r"weights from 0 to 1/4"):
        step(NOISED, [arrival(0, [0.1], weight=-0.1)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clip": 0.0}, r"rule\.clip is 0\.0"),
        ({"multiplier": -1.0}, r"rule\.multiplier is -1\.0"),
        ({"divisor": 0}, r"rule\.divisor is 0; .* size of the buffer"),
    ],
)
def test_impossible_settings_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        replace(NOISED, **change)


# ---- the whole algorithm ----------------------------------------------------------------------------------------


def experiment(strategy, updates=80):
    """All eight clients at work and equally fast, so that no client is twice in a buffer of four."""
    return af.Experiment(
        num_clients=8,
        data=af.data.PaperRegression(num_samples=200),
        strategy=strategy,
        budget=af.Budget(updates=updates),
    )


FEDBUFF = FedBuff(concurrency=8, buffer_size=4, work=CLIPPED)


def test_fedbuff_without_noise_is_fedbuff_with_clipped_changes():
    plain = af.run(experiment(replace(FEDBUFF, rule=Mean())))
    assert plain.sha256 == af.run(experiment(replace(FEDBUFF, rule=replace(NOISED, multiplier=0.0)))).sha256
    unclipped = replace(FEDBUFF, work=replace(CLIPPED, uplink=()))
    assert plain.params.tobytes() != af.run(experiment(unclipped)).params.tobytes()


def test_clipping_at_the_server_is_the_same_as_at_the_client():
    unclipped = replace(FEDBUFF, work=replace(CLIPPED, uplink=()), rule=replace(NOISED, rule=Clipped(norm=0.5)))
    at_the_client = af.run(experiment(replace(FEDBUFF, rule=NOISED)))
    assert af.run(experiment(unclipped)).params == pytest.approx(at_the_client.params, rel=1e-9)


def test_a_flush_moves_the_model_by_at_most_the_clip_and_its_noise(tmp_path):
    file = tmp_path / "run.sqlite"
    strategy = replace(FEDBUFF, rule=NOISED)
    whole = af.run(experiment(strategy), out=file)
    assert whole.sha256 == af.run(experiment(strategy), threads=2).sha256
    assert whole.sha256 != af.run(replace(experiment(strategy), seed=1)).sha256
    assert af.verify(file).ok
    noise = (
        af.run(experiment(strategy, updates=4)).params
        - af.run(experiment(replace(FEDBUFF, rule=replace(NOISED, multiplier=0.0)), updates=4)).params
    )
    assert 0 < np.linalg.norm(noise) < 0.25 * 6 * np.sqrt(noise.size)
    quiet = replace(FEDBUFF, rule=replace(NOISED, multiplier=0.0))
    models = [af.run(experiment(quiet, updates=updates)).params for updates in range(4, 41, 4)]
    moved = [np.linalg.norm(after - before) for before, after in pairwise(models)]
    assert max(moved) <= 0.5 * (1 + 1e-12)
    assert max(moved) > 0.1


def test_it_is_written_to_toml_and_read_back():
    described = experiment(replace(FEDBUFF, rule=Optimised(rule=replace(NOISED, rule=Clipped(norm=0.5)))))
    assert af.from_toml(af.to_toml(described)) == described


def test_afl_with_deltas_may_have_noise_too():
    strategy = AFL(concurrency=4, aggregate="delta_mean", work=CLIPPED, rule=NOISED)
    assert af.run(experiment(strategy)).finished


def test_clients_that_go_on_from_their_own_models_are_refused():
    with pytest.raises(ConfigError, match="start"):
        NOISED.check(replace(CLIPPED, start="own"))


def test_changes_of_which_the_server_keeps_an_estimate_are_refused():
    around = replace(NOISED, rule=Clipped(norm=0.5))
    with pytest.raises(ConfigError, match="EF21"):
        around.check(replace(CLIPPED, uplink=(EF21(),)))
    around.check(replace(CLIPPED, uplink=(TopK(),)))
