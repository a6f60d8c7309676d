"""A sampler that gives clients their turns in one order that stays: by number, or shuffled once."""

from __future__ import annotations

from typing import Any, Literal

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Cycle, draw_in_turn


@register("sampler")
class FixedCycle(Config, tag_field="kind", tag="fixed_cycle"):
    """Each client once per cycle, in the same order in every cycle: cyclic participation.

    With cohorts of J, where J divides the number of clients, the same blocks of clients come again and again. One that
    is busy at its turn comes when it is idle. One that joins comes last, from the next cycle on.

    Args:
        order: "numbered", by the clients' numbers; or "shuffled", drawn when the first cycle begins.

    >>> FixedCycle(order="shuffled").queues
    False

    Eichner et al., "Semi-Cyclic Stochastic Gradient Descent", ICML 2019; Cho et al., "On the Convergence of Federated
    Averaging with Cyclic Client Participation", ICML 2023.
    """

    order: Literal["numbered", "shuffled"] = "numbered"

    @property
    def queues(self) -> bool:
        return False

    @property
    def memory_type(self) -> Any:
        return Cycle

    def start(self) -> Cycle:
        return Cycle()

    def draw(self, memory: Any, view: View, k: int) -> tuple[list[int], Cycle]:
        return draw_in_turn(memory, view, k, lambda previous: self._next_order(previous, view))

    def _next_order(self, previous: tuple[int, ...], view: View) -> tuple[int, ...]:
        """The order of before without those that have left; then those that have come, by number."""
        here = sorted(view.clients[place] for place in range(len(view.clients)))
        if self.order == "numbered":
            return tuple(here)
        if not previous:
            view.rng.shuffle(here)
            return tuple(here)
        known = set(previous)
        kept = [client for client in previous if client in view.clients]
        return (*kept, *(client for client in here if client not in known))

    def draw_weights(self, num_clients: int, tickets: int) -> tuple[float, ...]:
        """The same for all, where one ticket is out at a time."""
        if tickets > 1:
            raise ConfigError(
                "the sampler fixed_cycle gives each client one turn per cycle, so every share is 1/C; how fast and how "
                "stale that is has no formula. Simulate it, or predict with uniform_idle or uniform_all."
            )
        return (1.0,) * num_clients
