"""ClientNodes: which node is which client, and when a node is queried."""

from __future__ import annotations

from collections.abc import Iterable

QUERY_SECONDS = 60.0
"""How long a node may take to introduce itself; then, and after a refused introduction, it is queried again."""

MAX_QUERY_SECONDS = 3600.0
"""A node that has to introduce itself anew is queried after `QUERY_SECONDS`, then after twice as long, up to this."""


class ClientNodes:
    """Which node is which client. A client has one node at a time; a node is queried before it gets work."""

    def __init__(self) -> None:
        self.node_of: dict[int, int] = {}
        self.client_of: dict[int, int] = {}
        self.query_again_at: dict[int, float] = {}
        self._pauses: dict[int, float] = {}
        self._away: set[int] = set()
        self._rivals: dict[int, set[int]] = {}

    def pause(self, node: int, now: float) -> None:
        """Query this node later, each time twice as much later, so that it cannot fill log and journal."""
        seconds = self._pauses.get(node, QUERY_SECONDS)
        self.query_again_at[node] = now + seconds
        self._pauses[node] = min(2 * seconds, MAX_QUERY_SECONDS)

    def note_online(self, online: set[int], now: float) -> None:
        """Let a node that was away, and is back, not wait longer than `QUERY_SECONDS`, whatever its pause was."""
        for node in self._away & online:
            self.query_again_at[node] = min(self.query_again_at[node], now + QUERY_SECONDS)
        self._away = self.query_again_at.keys() - online

    def trust(self, node: int) -> None:
        """The node did what it should: its next pause is a short one again."""
        self._pauses.pop(node, None)

    def find_unknown(self, nodes: Iterable[int], queried: set[int], now: float) -> list[int]:
        """Nodes that are to be queried."""
        return [
            node
            for node in nodes
            if node not in self.client_of and node not in queried and now >= self.query_again_at.get(node, 0.0)
        ]

    def add(self, node: int, client: int) -> str | None:
        """Record that `node` is `client`. Returns why that cannot be, or None."""
        holder = self.node_of.get(client)
        if holder is not None and holder != node:
            self._rivals.setdefault(client, set()).add(node)
            return f"client {client} is node {holder} already; give every node a partition-id of its own"
        self.node_of[client], self.client_of[node] = node, client
        return None

    def remove(self, node: int) -> int | None:
        """Forget the node. Returns the client it was; who was refused because of it is queried at once."""
        client = self.client_of.pop(node, None)
        if client is not None:
            del self.node_of[client]
            for rival in self._rivals.pop(client, ()):
                self.query_again_at.pop(rival, None)
        return client
