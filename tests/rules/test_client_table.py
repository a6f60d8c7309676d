"""The running sum is that of the rows, whatever is put, forgotten, grown or saved in between."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.rules.client_table import ClientTable

clients = st.integers(0, 12)
vectors = st.tuples(st.floats(-1e6, 1e6), st.floats(-1e-3, 1e-3), st.floats(-1, 1)).map(np.array)
changes = st.lists(st.one_of(st.tuples(clients, vectors), st.tuples(clients, st.none())), max_size=60)


@given(changes, st.integers(0, 5))
def test_the_mean_is_the_freshly_computed_one(history, num_clients):
    memory = ClientTable.init("t", np.zeros(3), num_clients)
    held, known = {}, set(range(num_clients))
    for client, vector in history:
        table = ClientTable(memory, "t")
        if vector is None:
            table.forget(client)
            held.pop(client, None)
        else:
            table.put(client, vector)
            held[client] = vector
            known.add(client)
        assert table.num_clients == len(known)
        total = np.sum([np.zeros(3), *held.values()], axis=0)
        assert table.sum() == pytest.approx(total, rel=1e-12, abs=1e-8)  # vectors of up to a million are taken out
        if known:
            assert table.mean() == pytest.approx(total / len(known), rel=1e-12, abs=1e-8)
        for each in range(14):
            assert table.row(each).tolist() == list(held.get(each, (0.0, 0.0, 0.0)))


@given(st.lists(st.tuples(st.integers(0, 6), st.floats(-1, 1)), min_size=1, max_size=80))
def test_it_is_the_mean_to_the_last_digits(history):
    memory = ClientTable.init("t", np.zeros(1), 7)
    rows = np.zeros(7)
    for client, value in history:
        ClientTable(memory, "t").put(client, np.array([value]))
        rows[client] = value
        assert abs(ClientTable(memory, "t").mean()[0] - rows.mean()) < 1e-14


@given(changes, changes)
def test_a_table_that_was_saved_goes_on_as_if_nothing_had_happened(before, after):
    memory = ClientTable.init("t", np.zeros(3), 4)
    change_all(memory, before)
    saved = {name: array.copy() for name, array in memory.items()}
    for kept in (memory, saved):
        change_all(kept, after)
    assert {name: array.tobytes() for name, array in saved.items()} == {n: a.tobytes() for n, a in memory.items()}


def change_all(memory, history):
    table = ClientTable(memory, "t")
    for client, vector in history:
        table.forget(client) if vector is None else table.put(client, vector)


def test_rounding_does_not_build_up():
    draws, rows = np.random.default_rng(0), np.zeros((5, 3))
    memory = ClientTable.init("t", np.zeros(3), 5)
    table = ClientTable(memory, "t")
    for step in range(5000):
        rows[step % 5] = draws.normal(size=3) * 10.0 ** draws.integers(-3, 9)
        table.put(step % 5, rows[step % 5])
    rows = draws.normal(size=(5, 3))  # huge vectors have come and gone
    for step in range(9):  # as many as it may take until the sum is computed anew
        table.put(step % 5, rows[step % 5])
    assert table.mean() == pytest.approx(rows.mean(axis=0), rel=1e-15, abs=1e-15)


def test_with_one_client_the_mean_is_its_vector_to_the_last_bit():
    table = ClientTable(ClientTable.init("t", np.zeros(2), 1), "t")
    for vector in np.random.default_rng(1).normal(size=(50, 2)) * 1e3:
        table.put(0, vector)
        assert table.mean().tobytes() == vector.tobytes()


def test_vectors_are_copied_and_keep_the_dtype_of_the_model_while_the_sum_is_wide():
    memory = ClientTable.init("t", np.zeros(2, np.float32), 3)
    table, vector = ClientTable(memory, "t"), np.array([0.1, 2.0])
    table.put(2, vector)
    vector[:] = 9.0
    assert table.row(2).dtype == np.float32
    assert table.row(2).tolist() == np.array([0.1, 2.0], np.float32).tolist()
    assert table.sum().dtype == np.float64
    assert table.sum().tolist() == table.row(2).astype(float).tolist()


def test_rows_are_made_when_they_are_needed_and_double():
    memory = ClientTable.init("t", np.zeros(1), 1000)
    sizes = set()
    for client in range(40):
        ClientTable(memory, "t").put(client, np.ones(1))
        sizes.add(len(memory["t/rows"]))
    assert sizes == {4, 8, 16, 32, 64}


def test_two_tables_live_in_one_memory():
    memory = {**ClientTable.init("a", np.zeros(1), 2), **ClientTable.init("b", np.zeros(1), 2)}
    ClientTable(memory, "a").put(0, np.ones(1))
    assert (ClientTable(memory, "a").mean().tolist(), ClientTable(memory, "b").mean().tolist()) == ([0.5], [0.0])
