"""Which node is which client, and when a node is queried."""

from asyncfed.flower.client_nodes import MAX_QUERY_SECONDS, QUERY_SECONDS, ClientNodes


def test_a_client_has_one_node_at_a_time():
    nodes = ClientNodes()
    assert nodes.add(7, 0) is None
    assert nodes.add(7, 0) is None
    assert nodes.add(8, 0) == "client 0 is node 7 already; give every node a partition-id of its own"
    assert nodes.remove(8) is None
    assert nodes.remove(7) == 0
    assert nodes.add(8, 0) is None


def test_only_nodes_that_are_unknown_and_not_queried_yet_are_queried():
    nodes = ClientNodes()
    nodes.add(7, 0)
    assert nodes.find_unknown([7, 8, 9], queried={9}, now=0.0) == [8]


def test_pauses_double_up_to_an_hour_until_the_node_can_be_trusted_again():
    nodes, pauses = ClientNodes(), []
    for _ in range(9):
        nodes.pause(7, now=100.0)
        pauses.append(nodes.query_again_at[7] - 100.0)
    assert pauses[:3] == [QUERY_SECONDS, 2 * QUERY_SECONDS, 4 * QUERY_SECONDS]
    assert pauses[-1] == MAX_QUERY_SECONDS
    assert nodes.find_unknown([7], set(), 100.0 + MAX_QUERY_SECONDS - 1.0) == []
    assert nodes.find_unknown([7], set(), 100.0 + MAX_QUERY_SECONDS) == [7]
    nodes.trust(7)
    nodes.pause(7, now=100.0)
    assert nodes.query_again_at[7] == 100.0 + QUERY_SECONDS
