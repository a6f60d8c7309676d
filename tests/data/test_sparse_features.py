"""Sparse rows of SciPy in tables and clients: canonical, fingerprinted, split, and refused where columns are read."""

import numpy as np
import pytest
from scipy import sparse

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.data import (
    ByColumn,
    Clients,
    ConceptShift,
    CovariateShift,
    DataRequest,
    InOrder,
    LabelDirichlet,
    QuantileDirichlet,
    Table,
    prepare_table,
)

DENSE = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0], [4.0, 5.0, 6.0]])
TARGETS = np.array([0.5, -1.0, 2.0, 0.0])


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_any_format_of_scipy_becomes_canonical_csr(kind, form):
    table = Table.from_arrays(kind(DENSE).asformat(form), TARGETS)
    assert isinstance(table.x, sparse.csr_array)
    assert table.x.has_canonical_format
    assert table.x.toarray().tolist() == DENSE.tolist()
    assert (table.num_rows, table.num_features, table.x.indices.dtype) == (4, 3, np.int32)


def test_duplicates_zeros_and_64_bit_columns_are_mended_and_what_was_given_is_left_alone():
    places = np.array([2, 0, 2, 1], np.int64), np.array([0, 3, 4], np.int64)
    given = sparse.csr_array((np.array([1.0, 2.0, 3.0, 0.0]), *places), shape=(2, 3))
    table = Table.from_arrays(given, [1.0, 2.0], labels=False)
    assert table.x.toarray().tolist() == [[2.0, 0.0, 4.0], [0.0, 0.0, 0.0]]
    assert table.x.nnz == 2
    assert table.x.indices.dtype == np.int32
    assert given.nnz == 4
    assert given.indices.tolist() == [2, 0, 2, 1]


def test_precision_is_kept_and_whole_numbers_become_double():
    assert Table.from_arrays(sparse.csr_array(DENSE.astype(np.float32)), TARGETS).y.dtype == np.float32
    assert Table.from_arrays(sparse.csr_array(DENSE.astype(int)), TARGETS).x.dtype == np.float64


def test_clients_pack_the_rows_they_would_have_as_an_array():
    owners = np.array([1, 0, 1, 0])
    packed = Clients.pack(Table.from_arrays(sparse.csr_array(DENSE), TARGETS), owners, 2, "float32")
    dense = Clients.pack(Table.from_arrays(DENSE, TARGETS), owners, 2, "float32")
    assert packed.x.toarray().tolist() == dense.x.tolist()
    assert packed.y.tolist() == dense.y.tolist()
    assert packed.x.dtype == np.float32
    assert packed.x.has_canonical_format
    assert packed.client(1)[0].toarray().tolist() == [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]
    assert packed.sha256() != dense.sha256()


def test_clients_of_lists_may_be_sparse():
    clients = Clients.from_lists([sparse.csr_array(DENSE[:1]), sparse.coo_array(DENSE[1:])], [[0.5], TARGETS[1:]])
    assert clients.x.toarray().tolist() == DENSE.tolist()
    assert clients.num_examples.tolist() == [1, 3]
    with pytest.raises(DataError, match="Client 1 has 2 features but client 0 has 3"):
        Clients.from_lists([sparse.csr_array(DENSE), sparse.csr_array(DENSE[:, :2])], [TARGETS, TARGETS])


def test_values_that_are_not_finite_are_refused_with_their_row():
    bad = DENSE.copy()
    bad[2, 1] = np.nan
    with pytest.raises(DataError, match="NaN or infinite, the first in row 2"):
        Table.from_arrays(sparse.csr_array(bad), TARGETS)


def test_rows_that_are_not_canonical_are_refused_where_nothing_is_converted():
    with pytest.raises(DataError, match="canonical CSR"):
        Table(sparse.csc_array(DENSE), TARGETS, False)
    with pytest.raises(DataError, match="must hold numbers"):
        Table.from_arrays(sparse.csr_array(DENSE.astype(complex)), TARGETS)


def test_fingerprints_tell_other_values_columns_and_rows():
    def fingerprint(x):
        return Clients.from_lists([sparse.csr_array(x)], [TARGETS], labels=False).sha256()

    moved = DENSE[:, [1, 0, 2]]
    assert len({fingerprint(x) for x in (DENSE, moved, DENSE * 2, DENSE[[1, 0, 2, 3]])}) == 4


@pytest.mark.parametrize("split", [InOrder(), QuantileDirichlet(bins=2)])
def test_splits_by_targets_assign_sparse_rows_as_they_do_arrays(split):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.5), rng.normal(size=60)
    request = DataRequest(split=split, num_clients=3)
    packed, dense = (prepare_table(Table.from_arrays(rows, y), request).clients for rows in (sparse.csr_array(x), x))
    assert packed.offsets.tolist() == dense.offsets.tolist()
    assert packed.x.toarray().tolist() == dense.x.tolist()


@pytest.mark.parametrize("split", [CovariateShift(), ByColumn(column=0), ConceptShift()])
def test_splits_that_read_columns_are_refused(split):
    table = Table.from_arrays(sparse.csr_array(DENSE), TARGETS)
    with pytest.raises(ConfigError, match="reads whole columns, and these rows are sparse"):
        prepare_table(table, DataRequest(split=split, num_clients=None if isinstance(split, ByColumn) else 2))


def test_labels_are_split_by_dirichlet():
    x = sparse.random_array((80, 30), density=0.1, rng=np.random.default_rng(0), format="csr")
    table = Table.from_arrays(x, np.tile([0, 1], 40))
    clients = prepare_table(table, DataRequest(split=LabelDirichlet(), num_clients=4)).clients
    assert clients.labels
    assert clients.num_examples.sum() == 80
