"""Ctrl-C and SIGTERM: a run stops at a clean moment instead of being cut off."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """The first Ctrl-C (or SIGTERM) sets the event, so that the run can stop at a clean moment; the second kills."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    before: dict[signal.Signals, Any] = {}

    def ask_to_stop(number: Any, frame: Any) -> None:
        interrupted.set()
        signal.signal(number, before[number])

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, ask_to_stop)
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
