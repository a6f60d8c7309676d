"""A thread in which a live server measures its models, where that takes long enough to keep clients waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

SHORT_SECONDS = 0.02
"""A measurement that takes less is made at once: nobody notices, and the server has its cores for itself."""

Measurement = Callable[[], dict[str, float]]


class MeasuringThread:
    """Measures at once what took less than `SHORT_SECONDS` the last time, anything else in a thread of its own."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._seconds = 0.0

    def __enter__(self) -> MeasuringThread:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._executor is not None:
            self._executor.shutdown()

    def submit(self, measure: Measurement) -> Future[dict[str, float]]:
        """Begin a measurement. The result, or its error, is in what is returned."""
        if self._seconds >= SHORT_SECONDS:
            self._executor = self._executor or ThreadPoolExecutor(1, thread_name_prefix="measuring")
            return self._executor.submit(self._timed, measure)
        done: Future[dict[str, float]] = Future()
        try:
            done.set_result(self._timed(measure))
        except Exception as error:  # raised to whoever takes the result, as if it had been measured in the thread
            done.set_exception(error)
        return done

    def _timed(self, measure: Measurement) -> dict[str, float]:
        began = time.monotonic()
        metrics = measure()
        self._seconds = time.monotonic() - began
        return metrics
