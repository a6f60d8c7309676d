"""The protocol of an engine: what moves messages between a session and its clients, and keeps the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from asyncfed.live.session import LiveSession
from asyncfed.problems.protocol import Problem


class EngineControl(Protocol):
    """What an engine calls about ten times a second while it works."""

    def stop_requested(self) -> bool:
        """True once the run is to be interrupted: accept what is nearly done, then return."""
        ...

    def report_progress(self) -> None:
        """Show how far the session is."""
        ...


class Engine(Protocol):
    """A frozen description of an engine; it is written into the run's header, so that the run can be resumed."""

    def check(self, problem: Problem) -> None:
        """Refuse, with a `ConfigError`, a problem that this engine cannot run. Nothing has been written yet."""
        ...

    def absent(self, num_clients: int) -> tuple[int, ...]:
        """Clients that are not expected when a run begins; they may join later."""
        ...

    def drive(self, session: LiveSession, problem: Problem, begin: Callable[[], None], control: EngineControl) -> None:
        """Call `begin` when the clients are ready, then work until the session is finished or `control` says stop."""
        ...
