"""Generated sparse texts: repeatable, of the shape that is asked for, and different from author to author."""

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.data import IID, DataRequest, Holdout, LabelDirichlet, SparseText, measure_heterogeneity

SMALL = SparseText(num_samples=300, num_features=500, words=12)


def test_rows_are_sparse_of_length_one_and_about_fifty_non_zeros():
    clients = SparseText(num_samples=2000).prepare(DataRequest(num_clients=4)).clients
    assert clients.x.shape == (2000, 100_000)
    assert clients.x.format == "csr"
    assert clients.x.indices.dtype == np.int32
    assert 48 < clients.x.nnz / 2000 < 53
    np.testing.assert_allclose(np.sqrt((clients.x.multiply(clients.x)).sum(axis=1)), 1.0, rtol=1e-12)
    assert clients.names == ("author 0", "author 1", "author 2", "author 3")
    assert clients.num_examples.tolist() == [500] * 4
    assert 0.8 < clients.y.std() < 1.2


def test_the_same_seed_gives_the_same_rows_and_another_seed_others():
    one, again, other = (SMALL.prepare(DataRequest(num_clients=3, seed=seed)).clients.sha256() for seed in (1, 1, 2))
    assert one == again != other


def test_labels_and_single_precision():
    clients = SMALL.prepare(DataRequest(num_clients=3, labels=True, dtype="float32")).clients
    assert clients.labels
    assert set(clients.y.tolist()) == {-1.0, 1.0}
    assert clients.x.dtype == clients.y.dtype == np.float32


def test_authors_differ_as_far_as_they_have_a_dialect():
    alike = SparseText(num_samples=2000, num_features=1000, words=20, dialect=0.0).prepare(DataRequest()).clients
    apart = SparseText(num_samples=2000, num_features=1000, words=20, dialect=0.8).prepare(DataRequest()).clients
    assert measure_heterogeneity(alike).verdict == "indistinguishable from IID"
    assert "features" in measure_heterogeneity(apart).verdict


def test_held_out_rows_are_sparse_too():
    prepared = SMALL.prepare(DataRequest(num_clients=3, holdout=Holdout(validation=0.1, test=0.2)))
    assert {part: rows.x.shape for part, rows in prepared.held_out.items()} == {
        "validation": (30, 500),
        "test": (60, 500),
    }
    assert prepared.clients.x.shape == (210, 500)
    assert prepared.held_out["test"].sha256() != prepared.held_out["validation"].sha256()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_samples": 0}, "data.num_samples is 0"),
        ({"words": 0}, "data.words is 0"),
        ({"exponent": -1.0}, "data.exponent is -1.0"),
        ({"noise": float("nan")}, "data.noise is nan"),
        ({"dialect": 1.5}, "data.dialect is 1.5"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        SparseText(**settings)


def test_a_split_or_more_clients_than_rows_is_refused():
    assert DataRequest().split == IID()
    with pytest.raises(ConfigError, match="draws each client's rows itself"):
        SMALL.prepare(DataRequest(split=LabelDirichlet(), labels=True))
    with pytest.raises(ConfigError, match="301 clients need at least a row each"):
        SMALL.prepare(DataRequest(num_clients=301))
