"""How many rows each client has, for those who ask client by client: no list of all where there are very many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from asyncfed.core.errors import ConfigError
from asyncfed.problems.protocol import Problem

MOST_LISTED_CLIENTS = 1_000_000
"""Clients up to which something may be kept for each of them; of more, only for those that were heard from."""


@runtime_checkable
class KnowsSizes(Protocol):
    """A problem that says how many rows a client has without a list of all."""

    @property
    def client_sizes(self) -> Sequence[int]:
        """The rows of each client, as long as there are clients."""
        ...


def client_sizes(problem: Problem) -> Sequence[int]:
    """The rows of each client of a problem: a list, or what a problem with very many clients has in its place."""
    return problem.client_sizes if isinstance(problem, KnowsSizes) else problem.num_examples.tolist()


def require_listed(num_clients: int, what: str) -> None:
    """Refuse something that has to be kept, or computed, for every single client.

    >>> require_listed(10**8, "The table of clients")
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: The table of clients needs something of every client, and there are 100,000,000; \
the limit is 1,000,000. Use a smaller population, or do without it: docs/population.md says what works at any size.
    """
    if num_clients > MOST_LISTED_CLIENTS:
        raise ConfigError(
            f"{what} needs something of every client, and there are {num_clients:,}; the limit is "
            f"{MOST_LISTED_CLIENTS:,}. Use a smaller population, or do without it: docs/population.md says what works "
            "at any size."
        )
