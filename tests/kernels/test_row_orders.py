"""Trainers written elsewhere read a client's rows in the order of the compiled loop."""

import numpy as np
import pytest

from asyncfed.core.random import Stream
from asyncfed.kernels import reference
from asyncfed.kernels.row_orders import epoch_orders, fill_schedule


@pytest.mark.parametrize("num_rows", [1, 2, 7, 64])
def test_orders_are_those_of_the_readable_shuffle(num_rows):
    stream, order = Stream(99), list(range(num_rows))
    for ours in epoch_orders(99, num_rows, 4):
        reference.shuffle(order, stream)
        assert ours.tolist() == order


@pytest.mark.parametrize(("num_rows", "batch"), [(6, 3), (7, 3), (2, 2), (5, 4)])
def test_a_schedule_reads_each_row_once_an_epoch_and_weighs_a_batch_as_one(num_rows, batch):
    per_epoch = -(-num_rows // batch)
    rows, weights = np.full((2 * per_epoch, batch), -1), np.full((2 * per_epoch, batch), np.nan)
    fill_schedule(7, num_rows, 100, batch, rows, weights)
    orders = epoch_orders(7, num_rows, 2)
    for epoch in range(2):
        steps = slice(epoch * per_epoch, (epoch + 1) * per_epoch)
        real = weights[steps] > 0
        assert (rows[steps][real] - 100).tolist() == orders[epoch].tolist()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert rows.min() >= 100
    assert rows.max() < 100 + num_rows
