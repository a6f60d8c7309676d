"""What a process that works for another one does first."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading


def become_worker() -> None:
    """What a worker process does first: leave Ctrl-C to its parent, and end when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """A parent that was killed cannot ask anybody to stop, and a pool's workers would wait for it for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
