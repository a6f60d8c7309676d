"""Rows assigned by class."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.data import partition_by_label


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), clients=st.integers(1, 8), min_size=st.integers(1, 4))
def test_everybody_gets_enough_and_the_seed_decides(seed, clients, min_size):
    labels = np.random.default_rng(seed).integers(0, 5, 60)
    owners = partition_by_label(labels, clients, concentration=0.3, min_size=min_size, seed=seed)
    assert np.bincount(owners, minlength=clients).min() >= min_size
    assert len(np.bincount(owners)) <= clients
    assert np.array_equal(owners, partition_by_label(labels, clients, concentration=0.3, min_size=min_size, seed=seed))


def largest_share(concentration):
    """How much of a client's rows its most frequent class makes, on average."""
    labels = np.repeat(np.arange(10), 200)
    owners = partition_by_label(labels, 10, concentration, min_size=10)
    return np.mean([np.bincount(labels[owners == c]).max() / (owners == c).sum() for c in range(10)])


def test_a_small_concentration_gives_clients_few_classes():
    assert largest_share(0.05) > 0.5 > 0.2 > largest_share(1000.0)


def test_names_are_classes_too():
    assert len(partition_by_label(["cat", "dog", "cat", "cow"], 2)) == 4


@pytest.mark.parametrize(
    ("labels", "settings", "error", "says"),
    [
        ([[0]], {"num_clients": 1}, DataError, "labels has shape"),
        ([0, 1], {"num_clients": 3}, ConfigError, "2 rows cannot give 3 clients 1 rows each"),
        ([0, 1], {"num_clients": 2, "concentration": 0.0}, ConfigError, "concentration is 0.0"),
    ],
)
def test_what_cannot_be_dealt_is_refused(labels, settings, error, says):
    with pytest.raises(error, match=says):
        partition_by_label(labels, **settings)
