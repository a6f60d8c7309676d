import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.problems.client_rows import client_rows

OFFSETS = np.array([0, 3, 3, 8])


def test_a_client_owns_its_rows_and_an_empty_one_none():
    assert [client_rows(OFFSETS, client) for client in range(3)] == [slice(0, 3), slice(3, 3), slice(3, 8)]


@pytest.mark.parametrize("client", [-1, 3])
def test_there_is_no_such_client(client):
    with pytest.raises(ConfigError, match=f"There is no client {client}; clients are 0 … 2"):
        client_rows(OFFSETS, client)
