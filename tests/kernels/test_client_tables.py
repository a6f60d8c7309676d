"""The loop's tables of clients keep the order of `ClientPool`, in any mixture of growing, storing and reading back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.pool import ClientPool
from asyncfed.kernels.client_tables import (
    client_at,
    empty_table,
    entries_of,
    entry_of,
    merges_of,
    move_client,
    put_at,
)
from asyncfed.sim.client_books import ClientBooks

FEW, MANY = 12, 10**8


@pytest.mark.parametrize("num_clients", [FEW, MANY])
@given(steps=st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=60))
def test_moves_are_those_of_a_pool(num_clients, steps):
    pool = ClientPool(range(num_clients))
    table, idle = empty_table(400), num_clients
    for comes, number in steps:
        client = number % num_clients if number < 20 else num_clients - 1 - number % min(num_clients, 20)
        if comes and client not in pool:
            pool.add(client)
            move_client(table, client, idle)
            idle += 1
        elif not comes and client in pool:
            pool.remove(client)
            idle -= 1
            move_client(table, client, idle)
        assert idle == len(pool)
    known = pool.to_plain()
    assert [client_at(table, place) for place in known["places"]] == known["clients"]
    stored = entries_of(table)
    assert sorted(stored["key"][stored["client"] != stored["key"]].tolist()) == known["places"]
    assert table["key"][-1] == len(stored)


@given(keys=st.lists(st.integers(0, 10**12), unique=True, max_size=30))
def test_keys_that_share_their_low_bits_are_told_apart(keys):
    table = empty_table(30)
    spread = [64 * key for key in keys]
    for key in spread:
        put_at(table, key, key + 1)
    assert [client_at(table, key) for key in spread] == [key + 1 for key in spread]
    assert client_at(table, 63) == 63  # who is not stored is at home


def test_books_are_given_back_as_they_were_taken_also_after_growing():
    pool = ClientPool(range(MANY))
    for client in range(0, 3000, 3):
        pool.remove(client)
    merges = {7 * c: c for c in range(1, 500)}
    rows = {7 * c: 499 - c for c in range(1, 500)}
    books = ClientBooks(pool, merges, rows, MANY, at_once=10)
    for _ in range(3):
        assert books.idle(len(pool)) == pool.to_plain()
        assert books.merges(len(merges)) == merges
        assert books.rows() == dict(sorted(rows.items(), key=lambda item: item[1]))
        before = len(books.first_merged)
        for client in range(before):
            entry_of(books.clients, MANY // 2 + client)
        books.grow()
        assert len(books.first_merged) > before
    assert merges_of(books.clients, np.array([7, MANY // 2])).tolist() == [1, 0]
