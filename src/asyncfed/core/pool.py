"""A set of client numbers with constant-time add, discard and pick-by-position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


class ClientPool:
    """Clients in an arbitrary but repeatable order; a removed one is replaced by the last.

    All whole numbers are put in an order, whose first `len(pool)` places are the pool; adding and removing let two of
    them change places. Only numbers that were moved are stored: a hundred million clients take the memory of those
    that were ever drawn, and an operation takes the same time for any number.

    >>> pool = ClientPool(range(4))
    >>> pool.remove(1), list(pool), len(pool), 1 in pool
    (True, [0, 3, 2], 3, False)
    """

    __slots__ = ("_client_at", "_place_of", "_size")

    def __init__(self, clients: Iterable[int] = ()) -> None:
        self._client_at, self._place_of = dict[int, int](), dict[int, int]()
        is_whole = isinstance(clients, range) and clients == range(len(clients))
        self._size = len(clients) if is_whole else 0  # type: ignore[arg-type]
        for client in () if is_whole else clients:
            self.add(client)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, position: int) -> int:
        place = range(self._size)[position]
        return self._client_at.get(place, place)

    def __iter__(self) -> Iterator[int]:
        return map(self.__getitem__, range(self._size))

    def __contains__(self, client: int) -> bool:
        return 0 <= self._place_of.get(client, client) < self._size

    def _move(self, client: int, place: int) -> None:
        before, other = self._place_of.get(client, client), self._client_at.get(place, place)
        self._client_at[before], self._client_at[place] = other, client
        self._place_of[other], self._place_of[client] = before, place

    def add(self, client: int) -> None:
        if client not in self:
            self._move(client, self._size)
            self._size += 1

    def remove(self, client: int) -> bool:
        """Take the client out; False if it was not there."""
        if client not in self:
            return False
        self._size -= 1
        self._move(client, self._size)
        return True

    def missing(self, below: int) -> set[int]:
        """Those of the first so many whole numbers that are not in it, without going through those that are."""
        return {c for c in (*self._place_of, *range(self._size, below)) if 0 <= c < below and c not in self}

    def to_plain(self) -> dict[str, Any]:
        """The pool as JSON can hold it, the same whatever led to it: as long as the list of those that were moved."""
        places = sorted(place for place, client in self._client_at.items() if client != place)
        return {"size": self._size, "places": places, "clients": [self._client_at[place] for place in places]}

    @classmethod
    def from_plain(cls, plain: Any) -> ClientPool:
        """The inverse of `to_plain`; files of earlier versions list all clients."""
        if isinstance(plain, list):
            return cls(plain)
        pool = cls(range(plain["size"]))
        pool._client_at = dict(zip(plain["places"], plain["clients"], strict=True))
        pool._place_of = {client: place for place, client in pool._client_at.items()}
        return pool
