import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.pool import ClientPool

CLIENTS = st.integers(0, 12)


@given(start=st.sets(CLIENTS), steps=st.lists(st.tuples(st.sampled_from(["add", "discard", "remove"]), CLIENTS)))
def test_it_is_a_set(start, steps):
    pool, plain = ClientPool(sorted(start)), set(start)
    for what, client in steps:
        if what == "add":
            pool.add(client)
            plain.add(client)
        elif what == "discard":
            pool.remove(client)
            plain.discard(client)
        else:
            assert pool.remove(client) == (client in plain)
            plain.discard(client)
        assert len(pool) == len(plain)
        assert sorted(pool) == sorted(plain)
        assert sorted(pool[place] for place in range(len(pool))) == sorted(plain)
        assert [client in pool for client in range(15)] == [client in plain for client in range(15)]


@given(steps=st.lists(st.tuples(st.booleans(), CLIENTS)))
def test_its_order_depends_on_its_history_alone(steps):
    one, other = ClientPool(range(5)), ClientPool(range(5))
    for add, client in steps:
        for pool in (one, other):
            pool.add(client) if add else pool.remove(client)
    assert list(one) == list(other)


def test_negative_numbers_are_not_in_it():
    pool = ClientPool(range(3))
    assert -1 not in pool
    assert not pool.remove(-1)
    assert list(pool) == [0, 1, 2]


class ListedPool:
    """The order of a pool, with a list of all members: what bytes of runs depend on."""

    def __init__(self, clients):
        self.members = list(clients)

    def add(self, client):
        if client not in self.members:
            self.members.append(client)

    def remove(self, client):
        place, last = self.members.index(client), self.members.pop()
        if last != client:
            self.members[place] = last


@given(
    start=st.one_of(st.integers(0, 12).map(range), st.sets(CLIENTS).map(sorted)),
    steps=st.lists(st.tuples(st.booleans(), CLIENTS)),
)
def test_its_order_is_that_of_a_list(start, steps):
    pool, listed = ClientPool(start), ListedPool(start)
    for add, client in steps:
        if add:
            pool.add(client)
            listed.add(client)
        elif pool.remove(client):
            listed.remove(client)
        assert list(pool) == listed.members == [pool[place] for place in range(len(pool))]
        again = ClientPool.from_plain(pool.to_plain())
        assert list(again) == listed.members
        assert again.to_plain() == pool.to_plain()
        assert [client in again for client in range(15)] == [client in listed.members for client in range(15)]
    assert list(ClientPool.from_plain(listed.members)) == listed.members  # as in files of earlier versions


def test_a_hundred_million_clients_take_the_memory_of_those_that_were_moved():
    pool = ClientPool(range(10**8))
    for client in (5, 99_999_999, 17):
        assert pool.remove(client)
    pool.add(5)
    assert (len(pool), pool[5], pool[17], pool[len(pool) - 1]) == (10**8 - 2, 99_999_998, 99_999_997, 5)
    assert len(pool.to_plain()["places"]) < 10


def test_a_place_beyond_the_end_is_nobodys():
    with pytest.raises(IndexError):
        ClientPool(range(3))[3]


@given(st.integers(0, 9), st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=40), st.integers(0, 14))
def test_who_is_missing_is_told_without_going_through_the_rest(size, steps, below):
    pool = ClientPool(range(size))
    for joins, client in steps:
        (pool.add if joins else pool.remove)(client)
    assert sorted(pool.missing(below)) == [client for client in range(below) if client not in pool]


def test_few_are_missing_of_a_hundred_million():
    pool = ClientPool(range(10**8))
    for client in (5, 10**8 - 1, 70):
        pool.remove(client)
    assert sorted(pool.missing(10**8)) == [5, 70, 10**8 - 1]
