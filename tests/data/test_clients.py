import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.data.clients import Clients
from asyncfed.data.table import Table


def numbered(rows, features=2, dtype=np.float64):
    """A table whose row r holds r in every cell."""
    r = np.arange(rows, dtype=dtype)
    return Table(np.repeat(r[:, None], features, axis=1), r.copy(), labels=False)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.sampled_from(["float32", "float64"]))
def test_packing_keeps_every_row_once_in_order_within_its_client(owners, dtype):
    _, owners = np.unique(owners, return_inverse=True)
    clients = Clients.pack(numbered(len(owners)), owners, owners.max() + 1, dtype)
    for client in range(clients.num_clients):
        x, y = clients.client(client)
        assert y.tolist() == np.flatnonzero(owners == client).tolist()
        assert x[:, 1].tolist() == y.tolist()
    assert clients.num_examples.tolist() == np.bincount(owners).tolist()
    assert clients.x.dtype == clients.y.dtype == np.dtype(dtype)


def test_gathering_in_blocks_gives_the_same_rows(monkeypatch):
    owners = np.array([2, 0, 1, 0, 2, 1, 0])
    whole = Clients.pack(numbered(7), owners, 3)
    monkeypatch.setattr("asyncfed.data.clients.CELLS_AT_ONCE", 4)
    assert Clients.pack(numbered(7), owners, 3).sha256() == whole.sha256()


def test_rows_in_client_order_are_not_copied():
    table = numbered(6)
    clients = Clients.pack(table, np.array([0, 0, 1, 1, 1, 2]), 3)
    assert np.shares_memory(clients.x, table.x)
    assert np.shares_memory(clients.y, table.y)
    shuffled = Clients.pack(table, np.array([0, 1, 0, 1, 1, 2]), 3)
    assert not np.shares_memory(shuffled.x, table.x)


def test_client_gives_views():
    clients = Clients.pack(numbered(4), np.array([0, 0, 1, 1]), 2)
    assert np.shares_memory(clients.client(1)[0], clients.x)
    with pytest.raises(DataError, match="no client 2; there are clients 0 to 1"):
        clients.client(2)
    with pytest.raises(DataError, match="no client -1"):
        clients.client(-1)


def test_empty_clients_are_named_counted_and_advised():
    with pytest.raises(DataError, match=r"2 of 4 clients have no rows \(client 1, 3\).*fewer clients.*min_size"):
        Clients.pack(numbered(3), np.array([0, 2, 2]), 4)
    with pytest.raises(DataError, match=r"1 of 2 clients have no rows \(client 0\)"):
        Clients.from_lists([np.empty((0, 2)), np.ones((1, 2))], [[], [1.0]])


@pytest.mark.parametrize(
    ("owners", "count", "error", "message"),
    [
        (np.array([0, 1]), 2, DataError, r"shape \(2,\).*each of the 3 rows"),
        (np.array([0.0, 1.0, 1.0]), 2, DataError, "float64; it must be whole numbers"),
        (np.array([0, 1, 2]), 2, DataError, "runs from 0 to 2; with 2 clients it must stay in 0 to 1"),
        (np.array([0, -1, 1]), 2, DataError, "runs from -1 to 1"),
        (np.array([0, 0, 0]), 0, ConfigError, "num_clients is 0"),
    ],
)
def test_wrong_owners_are_refused(owners, count, error, message):
    with pytest.raises(error, match=message):
        Clients.pack(numbered(3), owners, count)


def test_values_too_large_for_float32_do_not_become_infinite_silently():
    table = Table.from_arrays([[1.0], [1e300]], [1.0, 2.0], labels=False)
    with (
        np.errstate(over="ignore"),
        pytest.raises(DataError, match=r"x holds 1 value.*row 1.*too large for float32"),
    ):
        Clients.pack(table, np.array([0, 1]), 2, "float32")


def test_lists_are_packed_and_labels_read_over_all_clients():
    clients = Clients.from_lists([np.ones((2, 3)), np.zeros((1, 3))], [[0, 0], [1]], dtype="float32")
    assert clients.labels
    assert clients.y.tolist() == [-1, -1, 1]
    assert clients.offsets.tolist() == [0, 2, 3]
    assert clients.x.dtype == np.float32


@pytest.mark.parametrize(
    ("xs", "ys", "message"),
    [
        ([np.ones((2, 1))], [], "xs lists 1 clients and ys 0"),
        ([], [], "at least one"),
        ([np.ones((2, 1)), np.ones((2, 1))], [[1, 2], [1]], r"Client 1 has x of shape \(2, 1\) and y of shape \(1,\)"),
        ([np.ones((1, 2)), np.ones((1, 3))], [[1], [2]], "Client 1 has 3 features but client 0 has 2"),
        ([np.ones((1, 1)), np.array([[np.nan]])], [[1], [2]], r"x of client 1 holds 1 value\(s\).*row 0"),
        ([np.ones((1, 1)), [[1, 2], [3]]], [[1], [2, 3]], "x of client 1 is not an array"),
    ],
)
def test_wrong_lists_name_the_client(xs, ys, message):
    with pytest.raises(DataError, match=message):
        Clients.from_lists(xs, ys)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        (np.array([0, 2]), "runs from 0 to 2; it must run from 0 to the 3 rows"),
        (np.array([0, 3], np.int32), "dtype int32"),
        (np.array([0, 2, 1, 3]), r"1 of 3 clients have no rows \(client 1\)"),
    ],
)
def test_offsets_are_checked(offsets, message):
    with pytest.raises(DataError, match=message):
        Clients(np.ones((3, 1)), np.ones(3), offsets, labels=False)


def test_the_fingerprint_sees_values_owners_shape_dtype_and_labels():
    def fingerprint(y=(1.0, -1.0, 1.0), x=((1.0, 2.0),) * 3, offsets=(0, 1, 3), labels=False, dtype="float64"):
        return Clients(np.array(x, dtype), np.array(y, dtype), np.array(offsets), labels).sha256()

    changed = [
        fingerprint(y=(1.0, -1.0, -1.0)),
        fingerprint(x=((1.0, 2.0), (1.0, 2.0), (1.0, np.nextafter(2.0, 3.0)))),
        fingerprint(offsets=(0, 2, 3)),
        fingerprint(labels=True),
        fingerprint(dtype="float32"),
    ]
    assert fingerprint() == fingerprint()
    assert len({fingerprint(), *changed}) == 6
