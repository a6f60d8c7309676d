"""A client keeps the memory that was accepted and the one of the ticket that is out."""

import numpy as np

from asyncfed.uplinks.client_memory import ClientMemory

FIRST, ONE, TWO = ({"residual": np.full(1, float(i))} for i in range(3))


def test_the_next_ticket_says_which_counts():
    memory = ClientMemory()
    assert memory.recall(-1, FIRST) == (FIRST, -1)
    memory.store(4, ONE)
    assert memory.recall(4, FIRST) == (ONE, 4)
    memory.store(9, TWO)
    assert memory.recall(4, FIRST) == (ONE, 4)  # ticket 9 was refused
    assert 9 not in memory.of_ticket


def test_a_client_that_has_lost_its_memory_begins_anew_and_says_so():
    memory = ClientMemory()
    assert memory.recall(4, FIRST) == (FIRST, -1)
