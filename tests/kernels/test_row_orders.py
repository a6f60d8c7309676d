"""Trainers written elsewhere read a client's rows in the order of the compiled loop."""

import pytest

from asyncfed.core.random import Stream
from asyncfed.kernels import reference
from asyncfed.kernels.row_orders import epoch_orders


@pytest.mark.parametrize("num_rows", [1, 2, 7, 64])
def test_orders_are_those_of_the_readable_shuffle(num_rows):
    stream, order = Stream(99), list(range(num_rows))
    for ours in epoch_orders(99, num_rows, 4):
        reference.shuffle(order, stream)
        assert ours.tolist() == order
