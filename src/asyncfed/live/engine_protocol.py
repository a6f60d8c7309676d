"""What an engine is: whoever moves messages between a session and its clients, and keeps the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from asyncfed.live.session import LiveSession
from asyncfed.problems.protocol import Problem


class Orders(Protocol):
    """What whoever started an engine wants to be asked now and then."""

    def stop(self) -> bool:
        """True once the run is to be interrupted: take what is nearly done, then return."""
        ...

    def look(self) -> None:
        """Called about ten times a second, so that progress can be shown."""
        ...


class Engine(Protocol):
    """A frozen description of an engine; it is written into the run's header, so that the run can be resumed."""

    def check(self, problem: Problem) -> None:
        """Refuse, with a `ConfigError`, a problem that this engine cannot run. Nothing has been written yet."""
        ...

    def absent(self, num_clients: int) -> tuple[int, ...]:
        """Clients that are not counted on when a run begins; they may join later."""
        ...

    def drive(self, session: LiveSession, problem: Problem, begin: Callable[[], None], orders: Orders) -> None:
        """Call `begin` when the clients are there, then work until the session is finished or `orders` say stop."""
        ...
