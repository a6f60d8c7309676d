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
