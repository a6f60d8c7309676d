"""How many actors a node gets, and what part of its CPUs each of them takes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from asyncfed.cluster.connection import Node

GRAIN = 10_000
"""Ray counts CPUs in parts of that many."""


class Place(NamedTuple):
    """Where an actor is.

    Args:
        node: the node.
        cpus: what it takes of the node's CPUs, above 0 and at most 1.
    """

    node: Node
    cpus: float


def first_places(nodes: Sequence[Node], count: int | None, most: int | None) -> list[Place]:
    """Places for `count` actors, or for one per whole CPU, and at most for `most`, spread by the nodes' CPUs.

    More actors than CPUs share them.

    >>> a, b = Node("a", "10.0.0.1", 2.0), Node("b", "10.0.0.2", 1.0)
    >>> [(place.node.id, place.cpus) for place in first_places([a, b], None, None)]
    [('a', 1.0), ('a', 1.0), ('b', 1.0)]
    >>> [place.node.id for place in first_places([a, b], None, 2)]
    ['a', 'b']
    """
    usable = [node for node in nodes if node.cpus > 0]
    whole = sum(int(node.cpus) for node in usable)
    wanted = whole if count is None else count
    numbers: Counter[Node] = Counter()
    for _ in range(wanted if most is None else min(wanted, most)) if usable else ():
        numbers[min(usable, key=lambda node: (numbers[node] + 1) / node.cpus)] += 1
    return [Place(node, _share(node, numbers[node])) for node in usable for _ in range(numbers[node])]


def places_on(node: Node, most: int | None) -> list[Place]:
    """Places on a node that joined later: one per whole CPU, and at most so many."""
    number = int(node.cpus) if most is None else max(0, min(int(node.cpus), most))
    return [Place(node, _share(node, number)) for _ in range(number)]


def _share(node: Node, number: int) -> float:
    return min(1.0, math.floor(node.cpus / number * GRAIN) / GRAIN)
