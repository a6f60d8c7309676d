"""Which client is in which process, and which process on which node."""

from hypothesis import given
from hypothesis import strategies as st

from asyncfed.cluster.connection import Node
from asyncfed.cluster.live_placement import ProcessPlan, choose_node, plan_processes

NODES = [Node("a", "10.0.0.1", 1.0), Node("b", "10.0.0.2", 1.0, frozenset({"CPU", "ward"})), Node("c", "10.0.0.3", 1.0)]


@given(
    num_clients=st.integers(1, 40),
    named=st.dictionaries(st.integers(0, 39), st.sampled_from(["x", "y"])),
    each=st.integers(1, 9),
)
def test_every_client_is_in_one_process_with_others_of_its_node(num_clients, named, each):
    plans = plan_processes(num_clients, named, each)
    assert sorted(client for plan in plans for client in plan.clients) == list(range(num_clients))
    assert [plan.number for plan in plans] == list(range(len(plans)))
    for plan in plans:
        assert 1 <= len(plan.clients) <= each
        assert {named.get(client) for client in plan.clients} == {plan.node}


def test_processes_without_a_node_are_spread_over_all():
    chosen = [choose_node(ProcessPlan(number, (number,), None), NODES, elsewhere=False) for number in range(6)]
    assert [node.id for node in chosen] == ["a", "b", "c", "a", "b", "c"]


def test_a_node_is_named_by_its_id_its_address_or_what_it_offers():
    for name in ("b", "10.0.0.2", "ward"):
        assert choose_node(ProcessPlan(0, (0,), name), NODES, elsewhere=False).id == "b"


def test_a_process_whose_node_is_gone_waits_unless_it_may_go_elsewhere():
    plan = ProcessPlan(1, (1,), "ward")
    alive = [NODES[0], NODES[2]]
    assert choose_node(plan, alive, elsewhere=False) is None
    assert choose_node(plan, alive, elsewhere=True).id == "c"
    assert choose_node(plan, [], elsewhere=True) is None
