"""Ctrl-C and SIGTERM: a run stops at a clean moment instead of being cut off."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

STOPPING_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """The event is set by the first Ctrl-C or SIGTERM; a second one does what it would have done without this.

    Save what is to be saved inside the block. After it, a SIGTERM that came does what it would have done: it ends the
    process, unless the program has a handler of its own. A Ctrl-C is only noted: the caller gets its run back, saved,
    and whoever pressed it can press it again. Signals can be caught in the main thread only; in others nothing is done.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)
        interrupted.set()
        signal.signal(number, before[number])

    before: dict[int, Any] = {number: signal.signal(number, note) for number in STOPPING_SIGNALS}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if signal.SIGTERM in received:
        signal.raise_signal(signal.SIGTERM)
