"""ActorPool: processes on the nodes of a cluster that call functions, and what happens when one of them is lost.

A call is a pure function of its arguments, so a call whose actor or node was lost is done again by another actor. Who
does what, and how often, changes nothing of the results.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from asyncfed.cluster.actor_places import Place, first_places, places_on
from asyncfed.cluster.connection import Connection, Node
from asyncfed.core.errors import AsyncFedError, ConfigError
from asyncfed.runs.process_pool import Job, QueuedCall, answer_call, finished_calls

START_SECONDS = 120.0
"""How long it may take until an actor is there: the slowest part is importing what the problem needs."""

SETTLE_SECONDS = 10.0
"""How long the first actor waits for the others, which start at the same time."""

REVIEW_SECONDS = 5.0
"""How often it is checked whether nodes have joined."""

MOST_ATTEMPTS = 4
"""How many actors may be lost with a call before it is the call's fault."""

MOST_STARTS = 5
"""How many actors may be lost, one after another, in one place of a node that lives."""

T = TypeVar("T")


class ClusterLostError(ConfigError):
    """There is no node left that could compute."""


class Worker:
    """What an actor does: calls functions of modules, one at a time."""

    def begin(self, function: Callable[..., None] | None, arguments: tuple[Any, ...]) -> BaseException | None:
        """Call what is to be called first; gives back what it raised."""
        return None if function is None else answer_call(function, arguments)[1]

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, BaseException | None]:
        """What the function returned, and what it raised."""
        return answer_call(function, arguments)


class _Actor:
    """An actor, where it is, and the calls it was handed, by Ray's references to their results."""

    def __init__(self, handle: Any, place: Place, starts: int) -> None:
        self.handle, self.place, self.starts = handle, place, starts
        self.running: dict[Any, QueuedCall[Any]] = {}


class ActorPool:
    """A `Pool` of actors, at most `count`, pinned to nodes; one for each CPU of the cluster if None.

    Args:
        connection: to the cluster, whose nodes were checked.
        count: how many actors, at least 1; None for one per CPU, of nodes that join later too.
        most: more actors than that would be idle; None if there is no such limit.
        begin: called in each actor before its first call, with `arguments`.
        arguments: what `begin` is called with.
        advice: what is to be done after an error that a repetition cannot mend: the end of its message.
        depth: calls that an actor is handed at once; 2 hides the way there and back.
        notify: is told, in a sentence, of what was lost and what is done about it.
    """

    def __init__(
        self,
        connection: Connection,
        count: int | None = None,
        *,
        most: int | None = None,
        begin: Callable[..., None] | None = None,
        arguments: tuple[Any, ...] = (),
        advice: str = "",
        depth: int = 1,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self._connection, self._ray = connection, connection.ray
        self._count, self._most, self._depth = count, most, depth
        self._begin, self._advice, self._notify = begin, advice, notify
        self._shared_arguments = self._ray.put(arguments)  # once, however many actors there are
        self._queue: deque[QueuedCall[Any]] = deque()
        self._attempts: Counter[QueuedCall[Any]] = Counter()
        self._starting: dict[Any, _Actor] = {}
        self._actors: list[_Actor] = []
        self._closed, self._reviewed = False, time.monotonic()
        self._known_nodes: set[str] = set()
        try:
            self._open()
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> ActorPool:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def leave(self) -> None:
        """End all actors and the connection: the cluster as a whole is given up."""
        self._end()
        self._connection.close()

    @property
    def at_work(self) -> dict[str, int]:
        """How many actors there are on each node, by its address; those that are starting are not counted."""
        return dict(Counter(actor.place.node.address for actor in self._actors))

    def submit(self, function: Callable[..., T], *arguments: Any) -> QueuedCall[T]:
        """Have an actor call `function(*arguments)`, as soon as one is free."""
        if self._closed:
            raise ConfigError("This pool of actors is closed. Open another one.")
        call: QueuedCall[T] = QueuedCall(self._receive, (function, arguments))
        self._queue.append(call)
        self._assign()
        return call

    def finished(self, jobs: Iterable[Job[T]]) -> Iterator[Job[T]]:
        """The jobs as they end, in whatever order."""
        return finished_calls(jobs, self._receive)

    # ---- results and losses ------------------------------------------------------------------------------------

    def _receive(self) -> None:
        """Take in what has come; if nothing has, wait for it."""
        waited_since = time.monotonic()
        while True:
            if not self._actors and not self._starting:
                self._start_anew()
            if time.monotonic() - self._reviewed > REVIEW_SECONDS:
                self._require_head()
                self._welcome_nodes()
            if not self._actors and time.monotonic() - waited_since > START_SECONDS:
                raise self._without_actors()
            if self._take_in(timeout=1.0):
                return

    def _take_in(self, timeout: float) -> bool:
        """Whether a call has ended; actors that are ready, and those that are lost, are taken note of."""
        running = {reference: actor for actor in self._actors for reference in actor.running}
        waiting = [*running, *self._starting]
        if not waiting:
            return False
        ready, _ = self._ray.wait(waiting, num_returns=1, timeout=timeout)
        if ready:
            ready, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=0)
        ended = False
        for reference in ready:
            if reference in self._starting:
                self._join(reference)
            elif reference in running[reference].running:  # not lost with another call of the same actor
                ended = self._finish(running[reference], reference) or ended
        self._assign()
        return ended

    def _finish(self, actor: _Actor, reference: Any) -> bool:
        try:
            value, error = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as failure:  # `call` raises nothing: it could not be read
            raise ConfigError(
                f"Node {actor.place.node.address} cannot read what it was handed ({failure.cause!r}). Define "
                "strategies, problems and functions of your own in a module that every node can import."
            ) from failure
        except self._ray.exceptions.RayError as failure:
            self._lose(actor, failure)
            return False
        actor.running.pop(reference).finish(value, error)
        return True

    def _lose(self, actor: _Actor, error: Exception) -> None:
        """Have the calls of an actor that is gone done again, and put another in its place if its node lives."""
        self._actors = [other for other in self._actors if other is not actor]
        calls = list(actor.running.values())
        self._queue.extendleft(reversed(calls))
        self._attempts.update(calls)
        self._require_head()
        self._dismiss(actor)
        node = actor.place.node
        self._say(
            f"an actor on node {node.address} was lost ({_first_line(error)}); calls that are done again: {len(calls)}"
        )
        for call in calls:
            if self._attempts[call] >= MOST_ATTEMPTS:
                raise ConfigError(
                    f"{MOST_ATTEMPTS} actors were lost with the same call, the last on node {node.address} "
                    f"({_first_line(error)}). It may need more memory than a node has. {self._advice}".rstrip()
                )
        self._replace(actor)

    def _replace(self, actor: _Actor) -> None:
        alive = {node.id for node in self._connection.nodes()}
        if actor.place.node.id in alive and actor.starts < MOST_STARTS:
            self._start(actor.place, actor.starts + 1)
        elif actor.place.node.id not in alive:
            self._known_nodes.discard(actor.place.node.id)

    # ---- actors ------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        nodes = self._connection.nodes()
        self._known_nodes = {node.id for node in nodes}
        places = first_places(nodes, self._count, self._most)
        if not places:
            raise self._without_actors()
        for place in places:
            self._start(place)
        by_node = Counter(place.node.address for place in places)
        self._say(f"actors: {', '.join(f'{number} on {name}' for name, number in by_node.items())}")
        end = time.monotonic() + START_SECONDS
        while not self._actors:
            if time.monotonic() > end:
                raise self._without_actors()
            if not self._starting:
                self._start_anew()
            self._take_in(timeout=1.0)
        end = time.monotonic() + SETTLE_SECONDS
        while self._starting and time.monotonic() < end:
            self._take_in(timeout=0.2)

    def _start(self, place: Place, starts: int = 1) -> None:
        made = self._ray.remote(Worker).options(
            num_cpus=place.cpus, max_restarts=0, scheduling_strategy=self._connection.pinned_to(place.node)
        )
        actor = _Actor(made.remote(), place, starts)
        self._starting[actor.handle.begin.remote(self._begin, self._shared_arguments)] = actor

    def _join(self, reference: Any) -> None:
        """An actor is ready, or was lost before it was."""
        actor = self._starting.pop(reference)
        where = f"node {actor.place.node.address}"
        try:
            error = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as failure:
            raise ConfigError(
                f"{where} cannot read what it was handed ({failure.cause!r}). {self._advice}"
            ) from failure
        except self._ray.exceptions.RayError as failure:
            self._require_head()
            self._dismiss(actor)
            self._say(f"an actor on {where} could not start ({_first_line(failure)})")
            self._replace(actor)
            return
        if isinstance(error, AsyncFedError):
            raise type(error)(f"{where}: {error}") from error
        if error is not None:
            error.add_note(f"It happened on {where}.")
            raise error
        actor.starts = 0
        self._actors.append(actor)

    def _assign(self) -> None:
        """Hand queued calls to actors, to those with the fewest first."""
        while self._queue and self._actors:
            actor = min(self._actors, key=lambda one: len(one.running))
            if len(actor.running) >= self._depth:
                return
            call = self._queue.popleft()
            actor.running[actor.handle.call.remote(*call.payload)] = call

    def _welcome_nodes(self) -> None:
        """Start actors on nodes that have joined, if their code is the same."""
        self._reviewed = time.monotonic()
        new = [node for node in self._connection.nodes() if node.id not in self._known_nodes]
        if not new:
            return
        self._known_nodes |= {node.id for node in new}
        try:
            self._connection.check_nodes()
        except ConfigError as error:
            self._say(f"a node that has joined is not used: {error}")
            return
        for node in new:
            self._fill(node)

    def _fill(self, node: Node) -> None:
        """Start as many actors on a node as there is room and need for."""
        limits = [limit for limit in (self._count, self._most) if limit is not None]
        missing = min(limits) - len(self._actors) - len(self._starting) if limits else None
        for place in places_on(node, missing):
            self._start(place)

    def _start_anew(self) -> None:
        """All actors are gone: try the nodes that are left once more."""
        for node in self._connection.nodes():
            if node.id in self._known_nodes and node.cpus > 0:
                self._known_nodes.discard(node.id)
                self._fill(node)
        if not self._starting:
            raise self._without_actors()

    def _require_head(self) -> None:
        if not self._connection.head_answers():
            self._actors, self._starting = [], {}  # nobody is there who could end them: they end by themselves
            raise ClusterLostError(
                f"The head node of the cluster {self._connection.address} is gone, and with it the cluster."
            )

    def _without_actors(self) -> ClusterLostError:
        nodes, where = self._connection.nodes(), self._connection.address
        if not any(node.cpus > 0 for node in nodes):
            return ClusterLostError(
                f"No node of the cluster {where} is left that offers a CPU. Start one: ray start --address={where}."
            )
        return ClusterLostError(
            f"No actor could start on the {len(nodes)} nodes of the cluster {where} within {START_SECONDS:.0f} s. "
            "Others may hold their CPUs: see `ray status`."
        )

    def _dismiss(self, actor: _Actor) -> None:
        actor.running = {}
        with suppress(Exception):  # it may be gone, and the connection with it
            self._ray.kill(actor.handle)

    def _end(self) -> None:
        self._closed = True
        for actor in [*self._actors, *self._starting.values()]:
            self._dismiss(actor)
        self._actors, self._starting = [], {}
        self._queue.clear()

    def _say(self, sentence: str) -> None:
        if self._notify is not None:
            self._notify(sentence)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:120]}" if str(error) else type(error).__name__
