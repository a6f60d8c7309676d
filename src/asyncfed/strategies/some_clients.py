"""What a sampler is shown where it may draw only some of the clients, or where busy ones are about to be free."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from asyncfed.core.pool import ClientPool
from asyncfed.strategies.protocol import View


class ViewOf:
    """A view in which nobody is here but these clients, in the order in which the server has them.

    Args:
        view: the server's.
        clients: who is shown.
    """

    __slots__ = ("_view", "clients", "idle")

    def __init__(self, view: View, clients: Collection[int]) -> None:
        self._view = view
        self.clients = ClientPool([client for client in view.clients if client in clients])
        self.idle = ClientPool([client for client in view.idle if client in clients])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


class AllIdleView:
    """A view in which nobody holds a ticket.

    Actions are carried out after the strategy has answered, so clients whose tickets it cancels are still busy while
    its sampler draws the next cohort.

    Args:
        view: the server's, all of whose outstanding tickets the strategy cancels first.
    """

    __slots__ = ("_view", "in_flight")

    def __init__(self, view: View) -> None:
        self._view = view
        self.in_flight = 0

    @property
    def idle(self) -> ClientPool:
        """All clients that are here."""
        return self._view.clients

    def load(self, client: int) -> int:
        """No tickets."""
        return 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)
