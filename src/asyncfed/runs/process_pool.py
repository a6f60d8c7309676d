"""ProcessPool: worker processes for whatever is computed in several processes, and the one way in which they end.

- Ctrl-C is left to the parent.
- A `with` block left by an exception (Ctrl-C is one) ends all workers, whatever they are doing.
- A parent that was killed cannot end anybody, so each worker watches it and ends itself.
- A worker that dies ends the pool; the error says how it died and what to do.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar, cast

from asyncfed.core.errors import AsyncFedError, ConfigError

PATIENCE = 2.0
"""Seconds that a worker has to end by itself before it is killed."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class WorkerDiedError(ConfigError):
    """A worker process ended before its job did."""


class Job(Protocol[T_co]):
    """A call that was submitted to a pool."""

    def result(self) -> T_co:
        """What the function returned, once it has; what it raised is raised here."""
        ...


class Pool(Protocol):
    """Calls functions: in worker processes (`ProcessPool`), or in this one (`SameProcess`)."""

    def submit(self, function: Callable[..., T], *arguments: Any) -> Job[T]:
        """Have `function(*arguments)` called."""
        ...

    def finished(self, jobs: Iterable[Job[T]]) -> Iterator[Job[T]]:
        """The jobs as they end, in whatever order."""
        ...

    def __enter__(self) -> Pool: ...
    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def open_pool(count: int, advice: str = "") -> Pool:
    """A pool of so many worker processes, or for 1 this process itself. Use it in a `with` statement."""
    return SameProcess() if count == 1 else ProcessPool(count, advice=advice)


def check_portable(value: Any, name: str, advice: str, dumps: Callable[[object], bytes] = pickle.dumps) -> bytes:
    """Pickle what is to be handed to another process; a `ConfigError` names what cannot be, and says what to do."""
    try:
        return dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConfigError(f"{name} cannot be handed to another process ({error}). {advice}") from error


# ---- in this process -------------------------------------------------------------------------------------------


class SameProcess:
    """A pool without processes: a function is called when its result is asked for."""

    def submit(self, function: Callable[..., T], *arguments: Any) -> Job[T]:
        return _Call(function, arguments)

    def finished(self, jobs: Iterable[Job[T]]) -> Iterator[Job[T]]:
        yield from jobs

    def __enter__(self) -> SameProcess:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class _Call(Generic[T]):
    def __init__(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> None:
        self._function = function
        self._arguments = arguments

    def result(self) -> T:
        return self._function(*self._arguments)


# ---- in worker processes ---------------------------------------------------------------------------------------


class QueuedCall(Generic[T]):
    """A call that a worker does, or will do.

    Args:
        receive: takes in results of workers, at least one.
        payload: what a worker is handed: the function and its arguments.
    """

    def __init__(self, receive: Callable[[], None], payload: Any) -> None:
        self.payload = payload
        self.done = False
        self._receive = receive
        self._value: T | None = None
        self._error: BaseException | None = None

    def finish(self, value: T | None, error: BaseException | None) -> None:
        """Note what the call returned, or what it raised."""
        self.done, self._value, self._error = True, value, error

    def result(self) -> T:
        while not self.done:
            self._receive()
        if self._error is not None:
            raise self._error
        return cast(T, self._value)


def finished_calls(jobs: Iterable[Job[T]], receive: Callable[[], None]) -> Iterator[Job[T]]:
    """The queued calls as they end, in whatever order."""
    waiting = [cast(QueuedCall[T], job) for job in jobs]
    while waiting:
        ended = [call for call in waiting if call.done]
        waiting = [call for call in waiting if not call.done]
        yield from ended
        if not ended:
            receive()


class ProcessPool:
    """At most `count` worker processes that call functions of modules. They start when they are needed.

    Workers are spawned: they import the script that was started, so a script uses a pool under
    `if __name__ == "__main__":`. What is handed to them and back is pickled; unpickling imports the modules in which
    its classes are defined, so parts that those modules register are known to workers too.

    Args:
        count: how many processes, at least 1.
        begin: called in each worker before its first job, with `arguments`.
        arguments: what `begin` is called with.
        advice: what is to be done after a worker has died: the end of the error's message.
    """

    def __init__(
        self, count: int, begin: Callable[..., None] | None = None, arguments: tuple[Any, ...] = (), advice: str = ""
    ) -> None:
        if count < 1:
            raise ConfigError(f"workers is {count}; it must be at least 1.")
        self._count = count
        self._begin = begin
        self._arguments = arguments
        self._advice = advice
        self._open = True
        self._queue: deque[QueuedCall[Any]] = deque()
        self._idle: list[Connection] = []
        self._running: dict[Connection, QueuedCall[Any]] = {}
        self._processes: dict[Connection, SpawnProcess] = {}

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Let idle workers go; those still at work, after an error, are ended."""
        self._end(at_once=error is not None or bool(self._running))

    def submit(self, function: Callable[..., T], *arguments: Any) -> QueuedCall[T]:
        """Have a worker call `function(*arguments)`, as soon as one is free."""
        if not self._open:
            raise ConfigError("This pool of worker processes is closed. Open another one.")
        task: QueuedCall[T] = QueuedCall(self._receive, pickle.dumps((function, arguments)))
        self._queue.append(task)
        if self._running and not self._idle:
            self._receive(block=False)
        self._assign()
        return task

    def finished(self, jobs: Iterable[Job[T]]) -> Iterator[Job[T]]:
        """The jobs as they end, in whatever order."""
        return finished_calls(jobs, self._receive)

    def _receive(self, block: bool = True) -> None:
        """Take in the results that are there; if there are none, wait for one, unless `block` is false."""
        for ready in wait(list(self._running), None if block else 0):
            connection = cast(Connection, ready)
            try:
                value, error = connection.recv()
            except (EOFError, OSError):
                raise self._died(connection) from None
            self._idle.append(connection)
            self._running.pop(connection).finish(value, error)
        self._assign()

    def _assign(self) -> None:
        """Give queued jobs to idle workers, and start workers while there are too few."""
        while self._queue and (self._idle or len(self._processes) < self._count):
            connection = self._idle.pop() if self._idle else self._start()
            self._running[connection] = self._queue.popleft()
            try:
                connection.send_bytes(self._running[connection].payload)
            except OSError:
                raise self._died(connection) from None

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        # A daemon, so that a pool that nobody left ends with this process.
        process = context.Process(target=_work, args=(theirs, self._begin, self._arguments), daemon=True)
        process.start()
        theirs.close()  # so that nothing more can be read from ours when the worker is dead
        self._processes[ours] = process
        return ours

    def _died(self, connection: Connection) -> WorkerDiedError:
        process = self._processes[connection]
        process.join(PATIENCE)
        code = process.exitcode
        self._end(at_once=True)
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        return WorkerDiedError(f"A worker process died {how}. {self._advice}".rstrip())

    def _end(self, at_once: bool) -> None:
        for connection in self._processes:
            connection.close()  # an idle worker ends by itself
        for process in self._processes.values():
            if at_once:
                process.terminate()
        for process in self._processes.values():
            process.join(PATIENCE)
            process.kill()
            process.join()
        self._open, self._processes, self._running, self._idle = False, {}, {}, []
        self._queue.clear()


# ---- what a worker does ----------------------------------------------------------------------------------------


def _work(connection: Connection, begin: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    """Do one job after another until the parent closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if begin is not None:
        begin(*arguments)
    with suppress(EOFError, OSError):
        while True:
            connection.send(_answer(connection.recv_bytes()))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _answer(packed: bytes) -> tuple[Any, BaseException | None]:
    """What the call returned, and what it raised."""
    try:
        function, arguments = _unpacked(packed)
    except ConfigError as error:
        return None, error
    return answer_call(function, arguments)


def answer_call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, BaseException | None]:
    """In a worker: what the call returned, and what it raised, in a form that can be sent."""
    try:
        return function(*arguments), None
    except BaseException as error:
        return None, _portable_error(error)


def _unpacked(packed: bytes) -> Any:
    try:
        return pickle.loads(packed)
    except Exception as error:
        raise ConfigError(
            f"A worker process cannot read what it was handed ({error!r}). Define strategies, problems and functions "
            "of your own in a module that can be imported, not in an interactive session."
        ) from error


def _portable_error(error: BaseException) -> BaseException:
    """The error itself if it survives pickling, with the place where it was raised as a note."""
    where = "".join(traceback.format_exception(error))
    try:
        same: BaseException = pickle.loads(pickle.dumps(error))
    except Exception:
        same = RuntimeError(f"{type(error).__name__}: {error}")
    if not isinstance(error, AsyncFedError):
        same.add_note(f"In a worker process:\n{where}")
    return same
