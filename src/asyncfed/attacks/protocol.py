"""What an attack is: what a liar knows of a ticket, and what it sends in place of its honest change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from asyncfed.core.types import Work
from asyncfed.problems.protocol import Array
from asyncfed.registry import declare_part

Knowledge: TypeAlias = Literal["own", "coalition", "all"]
"""Whose data an attack uses: the liar's own, those of all liars, or everybody's (in a simulation only)."""

HonestChanges: TypeAlias = Callable[[Array, Sequence[int], Work], Array]
"""What these clients would honestly send from this start with this work, shape (k, p)."""


class Targets(NamedTuple):
    """What the targets of a problem's rows are.

    Args:
        kind: "labels" (−1 and +1), "classes" (0 … K−1) or "numbers".
        num_classes: K; 2 for labels, 0 for numbers.
    """

    kind: Literal["labels", "classes", "numbers"]
    num_classes: int


class LiarView(NamedTuple):
    """What a liar knows when it answers a ticket. Nothing in it may be written to.

    Args:
        start: the params that it was sent, shape (p,).
        change: its own honest change from there, shape (p,); of an attack on rows, the change from the poisoned rows.
        client: the liar.
        work: what it was asked to do.
        key: for draws of this ticket alone.
        secret: for draws that all liars agree on; the same in the whole run.
        liars: the clients that lie, in rising order.
        num_clients: how many clients there are, honest ones included.
        first: the run's first model, shape (p,).
        honest_changes: what clients would honestly send from a start; it depends on its arguments alone, so that liars
            that were sent the same model agree. Corrections that a strategy sends are left out. Of clients whose data
            the attack's `knows` does not cover, it may refuse.
    """

    start: Array
    change: Array
    client: int
    work: Work
    key: int
    secret: int
    liars: tuple[int, ...]
    num_clients: int
    first: Array
    honest_changes: HonestChanges

    def coalition(self) -> Array:
        """The honest changes of all liars from this start, one row a liar, shape (f, p)."""
        return self.honest_changes(self.start, self.liars, self.work)


@runtime_checkable
class Attack(Protocol):
    """How a liar lies: a frozen value, registered as "attack". One of your own inherits `Lying` and has `lie`:

        @register("attack")
        class Doubled(Lying, Config, tag_field="kind", tag="doubled"):
            def lie(self, view):
                return 2.0 * view.change

    Everything follows from the arguments: then a run with liars can be resumed, verified and done on any number of
    threads.
    """

    @property
    def knows(self) -> Knowledge:
        """Whose data it uses."""
        ...

    @property
    def least_liars(self) -> int:
        """How many liars it needs, 1 or more."""
        ...

    @property
    def poisons_rows(self) -> bool:
        """Whether liars train on rows that `poison` has changed."""
        ...

    @property
    def measures(self) -> str:
        """The name of the measurement that says how well it succeeds, for which `trigger` gives the rows, or ""."""
        ...

    def check(self, targets: Targets | None) -> None:
        """Refuse a problem that it cannot be used on; None: the rows cannot be had, or nobody asked for them."""
        ...

    def check_liars(self, liars: tuple[int, ...], num_clients: int) -> None:
        """Refuse liars with whom it cannot be used."""
        ...

    def lies(self, key: int) -> bool:
        """Whether a liar lies in the ticket that is trained with this key."""
        ...

    def delay_factor(self, key: int) -> float:
        """How many times as long as it would take the liar reports the ticket that is trained with this key."""
        ...

    def lie(self, view: LiarView) -> Array:
        """The change that is sent, shape (p,) and of the dtype of `view.change`; `view.change` itself to send that."""
        ...

    def poison(self, x: Array, y: Array, targets: Targets, key: int) -> tuple[Array, Array]:
        """One liar's rows as it trains on them: new arrays, or the same ones where nothing changes."""
        ...

    def trigger(self, x: Array, y: Array, targets: Targets) -> tuple[Array, Array]:
        """Honest rows, prepared so that the share of right answers on them is the measurement `measures`."""
        ...


declare_part("attack", Attack)


class Lying:
    """What most attacks share: a liar knows its own data, lies in every ticket, takes no longer, leaves its rows."""

    __slots__ = ()

    @property
    def knows(self) -> Knowledge:
        """Its own data."""
        return "own"

    @property
    def least_liars(self) -> int:
        """One."""
        return 1

    @property
    def poisons_rows(self) -> bool:
        """No."""
        return False

    @property
    def measures(self) -> str:
        """Nothing."""
        return ""

    def check(self, targets: Targets | None) -> None:
        """It can be used on any problem."""

    def check_liars(self, liars: tuple[int, ...], num_clients: int) -> None:
        """It can be used with any liars."""

    def lies(self, key: int) -> bool:
        """In every ticket."""
        return True

    def delay_factor(self, key: int) -> float:
        """It reports as soon as it can."""
        return 1.0

    def poison(self, x: Array, y: Array, targets: Targets, key: int) -> tuple[Array, Array]:
        """The rows as they are."""
        return x, y

    def trigger(self, x: Array, y: Array, targets: Targets) -> tuple[Array, Array]:
        """The rows as they are."""
        return x, y
