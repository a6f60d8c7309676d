"""Every client at work, all the time: the dispatching of methods that let fast clients compute again at the same point.

A strategy takes it by inheriting from it. Its fields are then `work` and `schedule`. Nobody waits: who is lost begins
again, who joins begins at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record
from asyncfed.core.types import Action, Cancel, Dispatch, Schedule, Train, Work
from asyncfed.strategies.dispatch import check_rule_fits
from asyncfed.strategies.protocol import View
from asyncfed.strategies.single_updates import SumOnly


class AllAtWork(SumOnly):
    """Each client that is here has one ticket. `state_class` is the strategy's state, made without arguments."""

    __slots__ = ()
    state_class: ClassVar[type[Record]]
    work: Work
    schedule: Schedule

    @property
    def state_type(self) -> type[Any]:
        """The state's class."""
        return self.state_class

    def check(self, num_clients: int) -> None:
        """Any number of clients will do; refuse a rule that does not fit the work."""
        check_rule_fits(self, self.work, num_clients)

    def start(self, view: View) -> tuple[Any, Sequence[Action]]:
        """A ticket for everybody."""
        return self.state_class(), self.train_all(view)

    def on_lost(self, state: Any, dispatch: Dispatch, view: View) -> tuple[Any, Sequence[Action]]:
        """The client begins again, unless it has left."""
        return state, [self.train(dispatch.client)] if dispatch.client in view.clients else ()

    def on_join(self, state: Any, client: int, view: View) -> tuple[Any, Sequence[Action]]:
        """The client begins at once."""
        return state, [self.train(client)]

    def on_leave(self, state: Any, client: int, view: View) -> tuple[Any, Sequence[Action]]:
        """Nothing: the client's ticket is lost next."""
        return state, ()

    def train(self, client: int, base_version: int | None = None) -> Train:
        """A ticket for this client, from the present model or from an older one that is still held."""
        return Train(client, self.work, self.schedule, base_version)

    def train_all(self, view: View) -> list[Action]:
        """A ticket for everybody, in the order of their numbers."""
        return [self.train(client) for client in sorted(view.clients)]

    def begin_anew(self, view: View, reason: str, gone: int = -1) -> list[Action]:
        """All tickets that are out are cancelled, and everybody gets one from the present model.

        `gone` has just left: its ticket is lost next, and so not to be cancelled.
        """
        out = [ticket for ticket, dispatch in view.outstanding.items() if dispatch.client != gone]
        return [*(Cancel(ticket, reason) for ticket in out), *self.train_all(view)]


def check_most_changes(most: int | None) -> None:
    """Refuse a limit below 1."""
    if most is not None and most < 1:
        raise ConfigError(f"strategy.most_changes is {most}; it must be at least 1 change, or none for no limit.")


class TicketsByClient(Record):
    """Reported tickets that wait for a step, by client; changed in place, because a copy costs as much as there are."""

    tickets: list[list[int]]

    def add(self, client: int, ticket: int) -> None:
        """This ticket of the client waits too."""
        self.tickets.extend([] for _ in range(client + 1 - len(self.tickets)))
        self.tickets[client].append(ticket)

    def of(self, client: int) -> list[int]:
        """Those of one client."""
        return self.tickets[client] if client < len(self.tickets) else []

    def take(self, client: int) -> list[int]:
        """Those of one client, which wait no longer."""
        taken = self.of(client)
        if taken:
            self.tickets[client] = []
        return taken
