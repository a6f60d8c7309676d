"""What a client remembers between its tickets, by the ticket that it remembers it from."""

from __future__ import annotations

from asyncfed.uplinks.chain import Arrays


class ClientMemory:
    """The memory that the server has accepted, and the one of the ticket that is out.

    A client cannot know whether its update will be lost or refused, so it keeps what it had before until its next
    ticket says which of the two counts.
    """

    def __init__(self) -> None:
        self.of_ticket: dict[int, Arrays] = {}

    def recall(self, ticket: int, first: Arrays) -> tuple[Arrays, int]:
        """The memory after this ticket, and its number; if there is none, `first` and -1. All others are forgotten."""
        self.keep(ticket)
        memory = self.of_ticket.get(ticket)
        return (first, -1) if memory is None else (memory, ticket)

    def keep(self, ticket: int) -> None:
        """Forget all but the memory after this ticket."""
        self.of_ticket = {ticket: self.of_ticket[ticket]} if ticket in self.of_ticket else {}

    def store(self, ticket: int, memory: Arrays) -> None:
        """The memory after this ticket's training."""
        self.of_ticket[ticket] = memory
