"""What an aggregator is: one vector in place of several, some of which may be lies."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, UnsetType
from asyncfed.registry import declare_part
from asyncfed.rules.protocol import Arrays


class Aggregate(NamedTuple):
    """What an aggregator made of k vectors.

    Args:
        vector: the aggregate, of the vectors' dtype.
        kept: (k,) whether each has a part in it: False is "filtered"; None if nobody is judged.
        scores: (k,) what each was judged by, such as a distance, the smaller the better; None if there is no such.
    """

    vector: np.ndarray
    kept: np.ndarray | None = None
    scores: np.ndarray | None = None


@runtime_checkable
class Aggregator(Protocol):
    """One vector in place of several, some of which may be lies. A frozen value with a memory in and out.

    | method | answers with |
    |---|---|
    | `tolerates(count)` | how many liars among so many vectors of equal weight cannot move the aggregate at will |
    | `check(count)` | nothing; raises ConfigError if it cannot work with so many vectors |
    | `init(like)` | the memory before the first: named arrays; `like` is a vector of the size and dtype to come |
    | `aggregate(vectors, weights, memory, ids)` | the aggregate, and the memory after it |

    `vectors` is (k, p), may not be changed, and holds other numbers after the call: copy what is to be remembered.
    `weights` are 0 or more and sum to 1; `ids` are k whole numbers that
    differ, and decide ties, the smaller one first. They are tickets in a merge, where one client may have several, and
    clients where there is one vector of each. The same vectors with the same weights and ids give the same bits, in
    whatever order they come. Numbers are finite. `check` is the caller's to call, before the first.
    """

    def tolerates(self, count: int) -> int: ...
    def check(self, count: int) -> None: ...
    def init(self, like: np.ndarray) -> Arrays: ...
    def aggregate(
        self, vectors: np.ndarray, weights: np.ndarray, memory: Arrays, ids: np.ndarray
    ) -> tuple[Aggregate, Arrays]: ...


@runtime_checkable
class CoordinateWise(Aggregator, Protocol):
    """An aggregator each of whose coordinates depends on that coordinate of the vectors alone, that judges nobody and
    remembers nothing: it may be asked for a range of coordinates at a time."""

    @property
    def by_coordinate(self) -> Literal[True]: ...


declare_part("aggregator", Aggregator)


class Memoryless:
    """What most aggregators share: no memory."""

    __slots__ = ()

    def init(self, like: np.ndarray) -> Arrays:
        """No memory."""
        return {}


def assumed_liars(liars: int | UnsetType, count: int, most: int) -> int:
    """How many liars are defended against: as set; left out, a third of the vectors, rounded up, at most `most`.

    >>> [assumed_liars(UNSET, count, (count - 1) // 2) for count in (3, 4, 5, 10)]
    [1, 1, 2, 4]
    """
    return min(most, -(-count // 3)) if liars is UNSET else liars


def check_liars(name: str, liars: int | UnsetType) -> None:
    """Refuse a number of liars below 0."""
    if liars is not UNSET and liars < 0:
        raise ConfigError(f"{name}.liars is {liars}; it must be 0 or more, or left out.")


def need_vectors(name: str, count: int, needed: int, liars: int) -> None:
    """Refuse fewer vectors than needed against so many liars."""
    if count < needed:
        many = "1 liar" if liars == 1 else f"{liars} liars"
        raise ConfigError(
            f"{name} needs at least {needed} updates at once to withstand {many}; there are {count}. "
            "Merge more at once, or set `liars` lower."
        )


def by_id(vectors: np.ndarray, weights: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The vectors and weights in the order of their ids, as they are if they have it already; and where each was."""
    order = np.argsort(ids, kind="stable")
    if (order[1:] > order[:-1]).all():
        return vectors, weights, order
    return vectors[order], weights[order], order


def are_equal(weights: np.ndarray) -> bool:
    """Whether all weights are the same."""
    return bool((weights == weights[0]).all())
