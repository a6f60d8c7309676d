"""On which node of a cluster each client of a live run is, and which clients share a process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from asyncfed.cluster.connection import Node


class ProcessPlan(NamedTuple):
    """The clients that share a process, the node they are to be on (None: any), and the number of the process."""

    number: int
    clients: tuple[int, ...]
    node: str | None


def plan_processes(num_clients: int, node_of: Mapping[int, str], clients_per_process: int) -> list[ProcessPlan]:
    """Clients that belong to the same node share processes, in the order of their numbers.

    >>> [(plan.clients, plan.node) for plan in plan_processes(5, {1: "10.0.0.7"}, 2)]
    [((0, 2), None), ((3, 4), None), ((1,), '10.0.0.7')]
    """
    by_node: dict[str | None, list[int]] = {}
    for client in range(num_clients):
        by_node.setdefault(node_of.get(client), []).append(client)
    plans: list[ProcessPlan] = []
    for node, clients in by_node.items():
        for first in range(0, len(clients), clients_per_process):
            plans.append(ProcessPlan(len(plans), tuple(clients[first : first + clients_per_process]), node))
    return plans


def choose_node(plan: ProcessPlan, alive: Sequence[Node], *, elsewhere: bool) -> Node | None:
    """The node for a process: the one it names, one after another of those it may be on, or None if there is none.

    `elsewhere` lets a process whose node is gone go to any other.

    >>> here, there = Node("a", "10.0.0.1", 2.0), Node("b", "10.0.0.2", 2.0, frozenset({"CPU", "scanner"}))
    >>> [choose_node(ProcessPlan(number, (number,), None), [here, there], elsewhere=False).id for number in range(3)]
    ['a', 'b', 'a']
    >>> choose_node(ProcessPlan(0, (0,), "scanner"), [here, there], elsewhere=False).id
    'b'
    """
    able = [node for node in alive if plan.node is None or is_called(node, plan.node)]
    if not able and elsewhere:
        able = list(alive)
    return able[plan.number % len(able)] if able else None


def is_called(node: Node, name: str) -> bool:
    """Whether a setting may mean this node by `name`: its id, its address or a resource it offers."""
    return name in (node.id, node.address) or name in node.resources
