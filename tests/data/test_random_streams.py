"""Streams are named by seed and purpose, and by nothing else."""

import numpy as np

from asyncfed.data.random_streams import keyed


def test_a_seed_and_a_purpose_name_one_stream():
    draws = {(seed, purpose): tuple(keyed(seed, purpose).random(4)) for seed in (0, 1) for purpose in ("a", "b")}
    assert len(set(draws.values())) == 4
    np.random.default_rng(0).random(10)  # other generators do not matter
    assert tuple(keyed(1, "b").random(4)) == draws[1, "b"]
