"""A sampler that gives each client one ticket per cycle, busy or not, in an order shuffled anew each time."""

from __future__ import annotations

from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Cycle


@register("sampler")
class ShuffledQueue(Config, tag_field="kind", tag="shuffled_queue"):
    """Every n tickets go to the n clients, one each, in an order shuffled anew; a busy client queues its ticket.

    As `shuffled_cycle`, but nobody is passed over: who is slow has a queue, and is heard as often as others.

    >>> ShuffledQueue().queues
    True

    Islamov, Safaryan & Alistarh, "AsGrad: A Sharp Unified Analysis of Asynchronous-SGD Algorithms", AISTATS 2024.
    """

    @property
    def queues(self) -> bool:
        return True

    @property
    def memory_type(self) -> Any:
        return Cycle

    def start(self) -> Cycle:
        return Cycle()

    def draw(self, memory: Any, view: View, k: int) -> tuple[list[int], Cycle]:
        chosen: list[int] = []
        order, position = memory.order, memory.position
        while len(chosen) < k and len(view.clients):
            if position == len(order):
                shuffled = sorted(view.clients[place] for place in range(len(view.clients)))
                view.rng.shuffle(shuffled)
                order, position = tuple(shuffled), 0
            client, position = order[position], position + 1
            if client in view.clients:  # it may have left since the order was drawn
                chosen.append(client)
        return chosen, Cycle(order, position)

    def draw_weights(self, num_clients: int, tickets: int) -> tuple[float, ...]:
        """The same for all, where one ticket is out at a time."""
        if tickets > 1:
            raise ConfigError(
                "the sampler shuffled_queue gives each client one ticket per cycle, so every share is 1/C; how stale "
                "that is has no formula. Simulate it, or predict with uniform_all, which draws the same shares."
            )
        return (1.0,) * num_clients
