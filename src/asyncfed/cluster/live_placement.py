"""On which node of a cluster each client of a live run is, and which clients share a process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Node(NamedTuple):
    """A node that is alive: its id and address, and the names of its custom resources."""

    node_id: str
    address: str
    resources: frozenset[str] = frozenset()

    def is_called(self, name: str) -> bool:
        """Whether a setting may mean this node by `name`: its id, its address or a resource it offers."""
        return name in (self.node_id, self.address) or name in self.resources


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
    """
    able = [node for node in alive if plan.node is None or node.is_called(plan.node)]
    if not able and elsewhere:
        able = list(alive)
    able.sort(key=lambda node: (node.address, node.node_id))
    return able[plan.number % len(able)] if able else None
