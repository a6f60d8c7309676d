"""ReplyCollector: fetches the replies of nodes without waiting for one that is still being sent.

Flower announces a reply as soon as its node begins to send it, and `Grid.pull_messages` then waits until all its pieces
are there: minutes, for a large model over a slow line, in which nobody else would be heard. So a thread calls it, and
if it does not return soon, the next look is another thread's. The SuperLink gives a reply to one of them alone; others
are told that there is no such message, which is not believed while a call that asked for it has not returned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from flwr.app import Message
from flwr.serverapp import Grid

PATIENCE_SECONDS = 1.0
"""How long a look for replies waits for its own result; most take milliseconds."""

MAX_PULLS = 64
"""So many replies may be on their way at a time before the next one has to wait."""

MESSAGE_UNAVAILABLE = 3
"""Flower's error code for a message that it does not know, or not any more."""


class _Pull(threading.Thread):
    """One call of `pull_messages`, or one for each message (`apart`) up to the first that fails."""

    def __init__(self, grid: Grid, expected: Iterable[str], *, apart: bool) -> None:
        super().__init__(daemon=True)  # a reply that is still being sent does not keep a finished run from ending
        self.expected = set(expected)
        self.replies: list[Message] = []
        self.error: BaseException | None = None
        self.failed: list[str] = []
        self._grid = grid
        self._apart = apart

    def run(self) -> None:
        every = sorted(self.expected)
        for asked in [[identity] for identity in every] if self._apart else [every]:
            try:
                self.replies += self._grid.pull_messages(asked)
            except BaseException as error:  # judged where the replies are looked for
                self.error, self.failed = error, asked
                return


class ReplyCollector:
    """The replies of one grid. `log` is told of one that cannot be read.

    Flower unpacks replies while it fetches them, and one that was not made by Flower makes the whole call fail. The
    SuperLink gives nothing out twice: the next look is told that there is no such message, which is how its ticket is
    lost and its node is found. From then on each reply is fetched by itself, so that none is lost with another's. What
    fails a second time is not a reply's fault, and is raised.
    """

    def __init__(self, grid: Grid, log: Callable[[str], None]) -> None:
        self._grid = grid
        self._log = log
        self._pulls: list[_Pull] = []
        self._being_sent: set[str] = set()
        self._apart = False
        self._failed: set[str] = set()

    def collect(self, expected: Iterable[str]) -> list[Message]:
        """Those replies to these messages that have arrived whole."""
        wanted = set(expected) - self._being_sent
        if wanted and len(self._pulls) < MAX_PULLS:
            pull = _Pull(self._grid, wanted, apart=self._apart)
            self._pulls.append(pull)
            pull.start()
            pull.join(PATIENCE_SECONDS)
        running = [pull for pull in self._pulls if pull.is_alive()]
        finished = [pull for pull in self._pulls if pull not in running]  # it may have ended since: next time, then
        self._pulls = running
        for pull in finished:
            self._judge(pull)
        unfinished = set().union(*(pull.expected for pull in running))
        self._being_sent &= unfinished
        replies = [reply for pull in finished for reply in pull.replies if not _is_unavailable(reply)]
        arrived = {_identity(reply) for reply in replies}
        for reply in [reply for pull in finished for reply in pull.replies if _is_unavailable(reply)]:
            if _identity(reply) in unfinished:
                self._being_sent.add(_identity(reply))  # another call has it
            elif _identity(reply) not in arrived:
                replies.append(reply)
        return replies

    def _judge(self, pull: _Pull) -> None:
        """Raise what the call raised, unless it may have been a reply's fault."""
        if pull.error is None:
            return
        if not isinstance(pull.error, Exception) or not self._failed.isdisjoint(pull.failed):
            raise pull.error
        if self._apart:
            self._failed.update(pull.failed)
        self._apart = True
        self._log(
            f"replies could not be fetched ({type(pull.error).__name__}); if one of them was the cause, its ticket "
            "will be lost. From now on each is fetched by itself"
        )


def _identity(reply: Message) -> str:
    """The message that it replies to."""
    return str(reply.metadata.reply_to_message_id)


def _is_unavailable(reply: Message) -> bool:
    return bool(reply.has_error() and reply.error.code == MESSAGE_UNAVAILABLE)
