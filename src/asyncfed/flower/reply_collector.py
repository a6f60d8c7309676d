"""ReplyCollector: fetches the replies of nodes without waiting for one that is still being sent.

Flower announces a reply as soon as its node begins to send it, and `Grid.pull_messages` then waits until all its pieces
are there: minutes, for a large model over a slow line, in which nobody else would be heard. So a thread calls it, and
if it does not return soon, the next look is another thread's. The SuperLink gives a reply to one of them alone; others
are told that there is no such message, which is not believed while a call that asked for it has not returned.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from flwr.app import Message
from flwr.serverapp import Grid

PATIENCE_SECONDS = 1.0
"""How long a look for replies waits for its own result; most take milliseconds."""

MAX_PULLS = 64
"""So many replies may be on their way at a time before the next one has to wait."""

MESSAGE_UNAVAILABLE = 3
"""Flower's error code for a message that it does not know, or not any more."""


class _Pull(threading.Thread):
    """One call of `pull_messages`."""

    def __init__(self, grid: Grid, expected: Iterable[str]) -> None:
        super().__init__(daemon=True)  # a reply that is still being sent does not keep a finished run from ending
        self.expected = set(expected)
        self.replies: list[Message] = []
        self.error: BaseException | None = None
        self._grid = grid

    def run(self) -> None:
        try:
            self.replies = list(self._grid.pull_messages(sorted(self.expected)))
        except BaseException as error:  # raised again where it is looked for
            self.error = error


class ReplyCollector:
    """The replies of one grid."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._pulls: list[_Pull] = []
        self._being_sent: set[str] = set()

    def collect(self, expected: Iterable[str]) -> list[Message]:
        """Those replies to these messages that have arrived whole."""
        wanted = set(expected) - self._being_sent
        if wanted and len(self._pulls) < MAX_PULLS:
            pull = _Pull(self._grid, wanted)
            self._pulls.append(pull)
            pull.start()
            pull.join(PATIENCE_SECONDS)
        finished = [pull for pull in self._pulls if not pull.is_alive()]
        self._pulls = [pull for pull in self._pulls if pull.is_alive()]
        unfinished = set().union(*(pull.expected for pull in self._pulls))
        self._being_sent &= unfinished
        replies = []
        for pull in finished:
            if pull.error is not None:
                raise pull.error
            for reply in pull.replies:
                identity = reply.metadata.reply_to_message_id
                if identity in unfinished and reply.has_error() and reply.error.code == MESSAGE_UNAVAILABLE:
                    self._being_sent.add(identity)  # another call has it
                else:
                    replies.append(reply)
        return replies
