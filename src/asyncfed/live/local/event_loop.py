"""Run a coroutine to its end, also where an event loop is running already, as in a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` in an event loop of its own and wait for it, in another thread if this one has a loop that runs.

    Signals still reach this thread while it waits, so Ctrl-C asks the run to stop as it does elsewhere.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1, "asyncfed-live") as thread:
        thread.submit(asyncio.run, work).result()
