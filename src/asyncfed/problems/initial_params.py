"""The key from which a problem draws its first params: one for the server, one for each client."""

from __future__ import annotations

from asyncfed.core.random import draw_key, purpose_key


def initial_key(seed: int, client: int | None) -> int:
    """The key of the server's first params, or of a client's own."""
    if client is None:
        return purpose_key(seed, "init server")
    return draw_key(purpose_key(seed, "init"), client, 0)
