"""Staleness-aware SGD: a change counts one over its staleness."""

import pytest

from asyncfed.core.server import Server
from asyncfed.core.types import Merge, Report, Work
from asyncfed.strategies import ConstantRate, FedBuff, InverseStaleness, NoDiscount, algorithms


def weights(strategy, order):
    """What each merge counts when the tickets of three clients come back in this order, by client."""
    server, found = Server(strategy, [1, 1, 1], seed=0), []
    server.start()
    for client in order:
        ticket = next(t for t, d in server.outstanding.items() if d.client == client)
        outputs = server.receive(Report(ticket, client, 0.0, 1.0, 1))
        found += [list(output.weights) for output in outputs if isinstance(output, Merge)]
    return found


def test_a_trace_by_hand():
    """Three at work. Client 0 twice, then 1 and 2, whose first tickets are 2 and 3 versions old, then 0 again.

    arrival   0  0  1  2    0
    tau       0  0  2  3    2
    counts    1  1  1/2  1/3  1/2
    """
    strategy = algorithms()["staleness_aware"].make(3, Work(), ConstantRate())
    assert weights(strategy, [0, 0, 1, 2, 0]) == [[1.0], [1.0], [0.5], [1 / 3], [0.5]]


def test_groups_are_averaged():
    """c = 2, so that a version passes with every second arrival."""
    strategy = FedBuff(concurrency=3, buffer_size=2, discount=InverseStaleness())
    assert weights(strategy, [0, 0, 0, 0, 1, 2]) == [[0.5, 0.5], [0.5, 0.5], [0.25, 0.25]]


@pytest.mark.parametrize("order", [[0], [1, 1, 1], [0, 1]])
def test_up_to_a_staleness_of_one_it_is_plain_asynchronous_sgd(order):
    aware = FedBuff(concurrency=3, buffer_size=1, discount=InverseStaleness())
    assert weights(aware, order) == weights(FedBuff(concurrency=3, buffer_size=1, discount=NoDiscount()), order)
