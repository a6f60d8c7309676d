"""Noise on prefix sums: its covariance is the tree's, without noise it is the sum, and a resumed run goes on."""

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Merge, Work
from asyncfed.kernels.noise_keys import secret_key
from asyncfed.kernels.noise_normals import noise_normals
from asyncfed.rules import Adam, Arrival, Mean, Noised, Optimised, TreeNoised
from asyncfed.uplinks import Clip

RULE = TreeNoised(clip=0.5, multiplier=2.0, divisor=4, releases=16)
SCALE = 2.0 * 0.5 / 4
WORK = Work(uplink=(Clip(norm=0.5),))


def arrivals_of(merge, size):
    start = np.zeros(size)
    return [Arrival(t, t, 0.25, 0, WORK, 1, 1, start, start + 1e-3 * (merge + t)) for t in range(4)]


def releases(rule, count, size, keys=None):
    """The models after each of so many merges, from zero."""
    params = np.zeros(size)
    memory, models = rule.init(params, 4), []
    for merge in range(count):
        key = merge + 1 if keys is None else keys[merge]
        arrivals = arrivals_of(merge, size)
        params, memory, _ = rule.step(memory, params, arrivals, Merge((0, 1, 2, 3), (0.25,) * 4), key)
        models.append(params)
    return np.array(models)


def nodes_of(prefix):
    """The nodes of a prefix sum: the binary digits, each as (first merge, merges)."""
    nodes, first = set(), 0
    for height in reversed(range(prefix.bit_length())):
        if prefix >> height & 1:
            nodes.add((first, 2**height))
            first += 2**height
    return nodes


def test_the_released_prefix_sums_have_the_covariance_of_the_tree():
    """Each entry of the model is a draw of its own, so that one run of many parameters shows the covariance."""
    count, size = 16, 60_000
    noise = releases(RULE, count, size) - releases(replace(RULE, multiplier=0.0), count, size)
    measured = noise @ noise.T / size / SCALE**2
    shared = [[len(nodes_of(s) & nodes_of(t)) for t in range(1, count + 1)] for s in range(1, count + 1)]
    assert measured == pytest.approx(np.array(shared), abs=0.06)
    # Its variance is the number of ones, not of merges: after 16 merges one node is left.
    assert np.diag(shared).tolist() == [t.bit_count() for t in range(1, count + 1)]


def test_without_noise_it_is_the_wrapped_rule():
    quiet = replace(RULE, multiplier=0.0)
    assert releases(quiet, 7, 5).tobytes() == releases(Mean(), 7, 5).tobytes()


def test_the_first_merge_is_that_of_noised():
    assert releases(RULE, 1, 5).tobytes() == releases(Noised(clip=0.5, multiplier=2.0, divisor=4), 1, 5).tobytes()


@pytest.mark.parametrize("make", [lambda number: number + 1, lambda number: secret_key(2**255 + number)])
def test_noise_that_was_added_is_taken_back_from_the_keys_alone(make):
    """After 2^h merges all noise but that of one node is gone; the memory went through bytes, as in a checkpoint."""
    size, params = 50, np.zeros(50)
    memory, plain = RULE.init(params, 4), releases(Mean(), 8, 50)[-1]
    for merge in range(8):
        memory = {name: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape) for name, a in memory.items()}
        step = RULE.step(memory, params, arrivals_of(merge, size), Merge((0, 1, 2, 3), (0.25,) * 4), make(merge))
        params, memory, _ = step
    only = plain + SCALE * noise_normals(make(7), size)
    assert params == pytest.approx(only, abs=1e-12)


def test_what_would_be_unsound_is_refused():
    with pytest.raises(ConfigError, match="this is merge 17"):
        releases(RULE, 17, 3)
    with pytest.raises(ConfigError, match="nothing clips"):
        RULE.check(Work())
    with pytest.raises(ConfigError, match="goes inside of other rules"):
        replace(RULE, rule=Optimised(optimiser=Adam())).check(WORK)
    with pytest.raises(ConfigError, match="releases is 0"):
        replace(RULE, releases=0)
    with pytest.raises(ConfigError, match="weights from 0 to 1/4"):
        RULE.step(RULE.init(np.zeros(3), 4), np.zeros(3), arrivals_of(0, 3), Merge((0, 1, 2, 3), (0.5,) * 4), 1)
    RULE.check(WORK)
