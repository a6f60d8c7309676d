"""Answers that are kept until their run changes, each computed once however many pages ask at the same moment."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from starlette.concurrency import run_in_threadpool

from asyncfed.dashboard.guard import to_json
from asyncfed.dashboard.run_view import RunView
from asyncfed.store.error_messages import explain_damage

MOST_BYTES = 64_000_000
"""Bytes of answers that are kept; the oldest go first."""


class KeptAnswers:
    """By question, the last answer in bytes and the state of the run that it is about."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[tuple[int, int], bytes]] = OrderedDict()
        self._running: dict[Hashable, asyncio.Future[bytes]] = {}
        self._size = 0

    async def get(self, question: Hashable, view: RunView, compute: Callable[[], Any]) -> bytes:
        """The answer as JSON: the kept one, if nothing is new in the run since."""
        state = (view.serial, view.change)
        kept = self._kept.get(question)
        if kept is not None and kept[0] == state:
            return kept[1]
        running = self._running.get((question, state))
        if running is None:
            running = asyncio.ensure_future(run_in_threadpool(_compute, view, compute))
            self._running[question, state] = running
            running.add_done_callback(lambda _: self._running.pop((question, state), None))
        body = await asyncio.shield(running)
        self._keep(question, state, body)
        return body

    def _keep(self, question: Hashable, state: tuple[int, int], body: bytes) -> None:
        replaced = self._kept.pop(question, None)
        self._kept[question] = (state, body)
        self._size += len(body) - (len(replaced[1]) if replaced else 0)
        while self._size > MOST_BYTES and self._kept:
            _, (_, oldest) = self._kept.popitem(last=False)
            self._size -= len(oldest)


def _compute(view: RunView, compute: Callable[[], Any]) -> bytes:
    with explain_damage(view.path, "row"):  # of values that contradict each other, which nobody looked for beforehand
        return to_json(compute())
