"""The ClientApp as Flower sees it: one message is one answer, whoever computes it.

A process is started for every message, so this module imports next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from flwr.app import Context, Message, MessageType, RecordDict
from flwr.clientapp import ClientApp

Answer: TypeAlias = Callable[[str, RecordDict, Context], RecordDict]
"""(message type, content, context) -> the content of the reply. What is remembered goes into `context.state`."""


class NodeError(Exception):
    """A task failed on this node. The server is sent the class of the cause, whose text stays in the node's log."""


def make_app(answer: Answer) -> ClientApp:
    """Flower's ClientApp: it introduces its node when queried, and trains the tasks it is sent."""
    app = ClientApp()

    @app.query()
    def introduce(message: Message, context: Context) -> Message:
        with only_class_names():
            return Message(answer(MessageType.QUERY, message.content, context), reply_to=message)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        with only_class_names():
            return Message(answer(MessageType.TRAIN, message.content, context), reply_to=message)

    return app


@contextmanager
def only_class_names() -> Iterator[None]:
    """Let no text of an exception leave this node: Flower sends that of whatever its app raises to the server.

    The text may hold paths and cells of data. The node's own log shows it, as the cause of the `NodeError`.
    """
    try:
        yield
    except NodeError:
        raise
    except Exception as error:
        raise NodeError(type(error).__name__) from error
