"""Which of the packed rows belong to a client."""

from __future__ import annotations

from asyncfed.core.errors import ConfigError
from asyncfed.problems.protocol import Array


def client_rows(offsets: Array, client: int) -> slice:
    """The client's rows, from its first up to the one after its last; a `ConfigError` if there is no such client."""
    if not 0 <= client < len(offsets) - 1:
        raise ConfigError(f"There is no client {client}; clients are 0 … {len(offsets) - 2}.")
    return slice(int(offsets[client]), int(offsets[client + 1]))
