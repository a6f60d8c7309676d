"""How actors are spread over nodes."""

from hypothesis import given
from hypothesis import strategies as st

from asyncfed.cluster.actor_places import first_places, places_on
from asyncfed.cluster.connection import Node

NODES = st.lists(st.integers(0, 9), min_size=1, max_size=6).map(
    lambda cpus: [Node(f"n{i}", f"10.0.0.{i}", float(count)) for i, count in enumerate(cpus)]
)


@given(NODES, st.none() | st.integers(1, 40), st.none() | st.integers(1, 40))
def test_nodes_are_never_asked_for_more_than_they_have(nodes, count, most):
    places = first_places(nodes, count, most)
    whole = int(sum(node.cpus for node in nodes))
    wanted = (whole if count is None else count) if whole else 0
    assert len(places) == (wanted if most is None else min(wanted, most))
    for node in nodes:
        there = [place for place in places if place.node == node]
        assert sum(place.cpus for place in there) <= node.cpus + 1e-9
        if len(places) <= whole:
            assert all(place.cpus == 1.0 for place in there)


def test_a_node_that_joins_is_filled_as_far_as_there_is_need():
    node = Node("a", "10.0.0.1", 2.5)
    assert [len(places_on(node, most)) for most in (None, 1, 0, -3, 9)] == [2, 1, 0, 0, 2]
