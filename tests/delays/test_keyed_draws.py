"""The fast uniform numbers are those of `core.random`, one by one and in bulk."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.random import draw_key, purpose_key, unit
from asyncfed.delays.keyed_draws import client_unit, client_units, keyed_unit

WORDS = st.integers(0, 2**64 - 1)


@given(WORDS, st.integers(0, 2**40), st.integers(0, 2**40))
def test_one_number_is_that_of_the_written_definition(purpose: int, client: int, ticket: int) -> None:
    assert keyed_unit(purpose, client, ticket) == unit(draw_key(purpose, client, ticket))


@settings(max_examples=30)
@given(st.integers(0, 2**64 - 1), st.integers(1, 50))
def test_bulk_equals_one_by_one(seed: int, num_clients: int) -> None:
    purpose = purpose_key(seed, "slowness")
    singly = [unit(draw_key(purpose, client, 0)) for client in range(num_clients)]
    assert client_units(purpose, num_clients).tolist() == singly
    assert client_unit(purpose, num_clients - 1) == singly[-1]


def test_the_numbers_of_many_clients_are_uniform() -> None:
    units = client_units(purpose_key(1, "slowness"), 100_000)
    counts = np.histogram(units, bins=10, range=(0, 1))[0]
    assert np.all(np.abs(counts - 10_000) < 5 * np.sqrt(9_000))
