"""Which clients work next. A sampler is a frozen value: `start()` gives its memory, `draw` takes and returns it."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from asyncfed.core.errors import ConfigError
from asyncfed.core.pool import ClientPool
from asyncfed.core.random import Stream
from asyncfed.core.record import Config, Record
from asyncfed.core.types import Update, Work
from asyncfed.registry import declare_part, register
from asyncfed.strategies.protocol import View


@runtime_checkable
class Sampler(Protocol):
    """What a sampler is; any part with these members is one, and `register("sampler")` makes it known by its kind.

    `draw(memory, view, k)` answers with at most k clients, fewer when there are not enough, and with the memory for the
    next draw. A sampler that `queues` may name busy clients: they keep the ticket in their queue and work on it later,
    from the model they were sent with it. The memory is a value of the type `memory_type` (`type(None)` if there is
    nothing to remember) that JSON can hold, so that a run can be saved and resumed.
    """

    @property
    def queues(self) -> bool: ...
    @property
    def memory_type(self) -> Any: ...
    def start(self) -> Any: ...
    def draw(self, memory: Any, view: View, k: int) -> tuple[list[int], Any]: ...


declare_part("sampler", Sampler)


@runtime_checkable
class ObservingSampler(Sampler, Protocol):
    """A sampler that learns from reports: who was how fast, and how large its loss was.

    `observe(memory, update, view)` is called once for every report that the server accepts, before the strategy decides
    what becomes of it, and answers with the memory for the next draw. A report that the strategy then drops as too
    stale was observed all the same; a lost ticket is not.
    """

    def observe(self, memory: Any, update: Update, view: View) -> Any: ...


@runtime_checkable
class WorkCheckingSampler(Sampler, Protocol):
    """A sampler that needs numbers which not all work asks clients to measure.

    `check(work)` is called before a run and raises `ConfigError` if the work does not.
    """

    def check(self, work: Work) -> None: ...


def require_measurement(sampler: str, work: Work, name: Literal["loss", "start_loss", "start_rms"]) -> None:
    """Refuse work whose clients do not measure this number.

    >>> require_measurement("oort", Work(), "start_rms")
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: the sampler oort draws clients by their start_rms, which work does not ask for. \
Set strategy.work.start_rms to true, or use another sampler.
    """
    if not getattr(work, name):
        raise ConfigError(
            f"the sampler {sampler} draws clients by their {name}, which work does not ask for. "
            f"Set strategy.work.{name} to true, or use another sampler."
        )


@runtime_checkable
class PredictableSampler(Sampler, Protocol):
    """A sampler whose draws have a formula, so that participation can be predicted without a simulation.

    `draw_weights(num_clients, tickets)` answers with each client's weight in a draw while so many tickets are out, or
    raises `ConfigError` and says why there is no formula.
    """

    def draw_weights(self, num_clients: int, tickets: int) -> tuple[float, ...]: ...


def distinct_positions(rng: Stream, n: int, k: int) -> list[int]:
    """k different whole numbers below n, in random order, at a cost of k (a Fisher-Yates shuffle kept sparse)."""
    moved: dict[int, int] = {}
    chosen = []
    for i in range(min(k, n)):
        j = i + rng.below(n - i)
        chosen.append(moved.get(j, j))
        moved[j] = moved.get(i, i)
    return chosen


@register("sampler")
class UniformIdle(Config, tag_field="kind", tag="uniform_idle"):
    """Uniform without replacement among the idle clients: the paper's sampling.

    >>> UniformIdle().queues
    False
    """

    draws_from_idle: ClassVar[bool] = True
    """Uniformly, and remembers nothing: a simulator may draw ahead."""
    any_population: ClassVar[bool] = True

    @property
    def queues(self) -> bool:
        return False

    @property
    def memory_type(self) -> Any:
        return type(None)

    def start(self) -> None:
        return None

    def draw(self, memory: Any, view: View, k: int) -> tuple[list[int], None]:
        idle, count = view.idle, len(view.idle)
        if k == 1 and count:
            return [idle[view.rng.below(count)]], None
        return [idle[place] for place in distinct_positions(view.rng, count, k)], None

    def draw_weights(self, num_clients: int, tickets: int) -> tuple[float, ...]:
        """The same for all."""
        return (1.0,) * num_clients


@register("sampler")
class UniformAll(Config, tag_field="kind", tag="uniform_all"):
    """Uniform over all clients, busy or not: a busy one queues the ticket (queueing analyses of asynchronous SGD).

    >>> UniformAll().queues
    True

    Leconte et al., "Queuing dynamics of asynchronous federated learning", AISTATS 2024.
    """

    any_population: ClassVar[bool] = True

    @property
    def queues(self) -> bool:
        return True

    @property
    def memory_type(self) -> Any:
        return type(None)

    def start(self) -> None:
        return None

    def draw(self, memory: Any, view: View, k: int) -> tuple[list[int], None]:
        clients = view.clients
        n = len(clients)
        return [clients[view.rng.below(n)] for _ in range(k if n else 0)], None

    def draw_weights(self, num_clients: int, tickets: int) -> tuple[float, ...]:
        """The same for all."""
        return (1.0,) * num_clients


@register("sampler")
class ShortestQueue(Config, tag_field="kind", tag="shortest_queue"):
    """Whoever holds the fewest tickets, ties drawn uniformly, nobody more than `depth`: work fetched ahead.

    A client then goes on at once with the next ticket while its last report travels. The cost of a draw grows with
    the number of clients whenever nobody is idle.

    Args:
        depth: the most tickets a client may hold, 1 or more.
    """

    depth: int = 2

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise ConfigError(f"sampler.depth is {self.depth}; a client must be able to hold at least 1 ticket.")

    @property
    def queues(self) -> bool:
        return self.depth > 1

    @property
    def memory_type(self) -> Any:
        return type(None)

    def start(self) -> None:
        return None

    def draw(self, memory: Any, view: View, k: int) -> tuple[list[int], None]:
        idle = view.idle
        chosen = [idle[place] for place in distinct_positions(view.rng, len(idle), k)]
        if len(chosen) == k or not self.queues:
            return chosen, None
        clients = [view.clients[place] for place in range(len(view.clients))]
        loads = {client: view.load(client) + chosen.count(client) for client in clients}
        while len(chosen) < k:
            fewest = min(loads.values(), default=self.depth)
            if fewest >= self.depth:
                break
            level = [client for client, load in loads.items() if load == fewest]
            client = level[view.rng.below(len(level))]
            loads[client] += 1
            chosen.append(client)
        return chosen, None

    def draw_weights(self, num_clients: int, tickets: int) -> tuple[float, ...]:
        """The same for all."""
        return (1.0,) * num_clients


class Cycle(Record):
    """The memory of a cyclic sampler: the order of this cycle, the position in it, and clients passed over as busy."""

    order: tuple[int, ...] = ()
    position: int = 0
    passed_over: tuple[int, ...] = ()


def draw_in_turn(
    memory: Cycle, view: View, k: int, next_order: Callable[[tuple[int, ...]], tuple[int, ...]]
) -> tuple[list[int], Cycle]:
    """Up to k idle clients by their turn in a cycle; `next_order(previous)` is the order of the next one.

    One that is busy at its turn comes when it is idle, and no cycle ends before everybody in it had a turn.
    """
    chosen: list[int] = []
    order, position, waiting = memory.order, memory.position, list(memory.passed_over)
    for client in memory.passed_over:
        if len(chosen) < k and client in view.idle:
            chosen.append(client)
        if client in chosen or client not in view.clients:
            waiting.remove(client)
    while len(chosen) < k:
        if position == len(order):
            if waiting or len(chosen) >= len(view.idle):
                break  # a cycle is not over before everyone in it had a turn
            order, position = next_order(order), 0
        client, position = order[position], position + 1
        if client in view.idle and client not in chosen:
            chosen.append(client)
        elif client in view.clients:
            waiting.append(client)
    return chosen, Cycle(order, position, tuple(waiting))


@register("sampler")
class ShuffledCycle(Config, tag_field="kind", tag="shuffled_cycle"):
    """Each client once per cycle, in an order shuffled anew each time; one that is busy at its turn comes when idle."""

    @property
    def queues(self) -> bool:
        return False

    @property
    def memory_type(self) -> Any:
        return Cycle

    def start(self) -> Cycle:
        return Cycle()

    def draw(self, memory: Any, view: View, k: int) -> tuple[list[int], Cycle]:
        return draw_in_turn(memory, view, k, lambda previous: self._shuffled(view))

    def _shuffled(self, view: View) -> tuple[int, ...]:
        order = sorted(view.clients[i] for i in range(len(view.clients)))
        view.rng.shuffle(order)
        return tuple(order)

    def draw_weights(self, num_clients: int, tickets: int) -> tuple[float, ...]:
        """The same for all, where one ticket is out at a time."""
        if tickets > 1:
            raise ConfigError(
                "the sampler shuffled_cycle gives each client one turn per cycle, so every share is 1/C; how fast and "
                "how stale that is has no formula. Simulate it, or predict with uniform_idle or uniform_all."
            )
        return (1.0,) * num_clients


@register("sampler")
class Weighted(Config, tag_field="kind", tag="weighted"):
    """Client c with probability proportional to `weights[c]`; a client beyond the list counts as the mean weight.

    Args:
        weights: one for each client by number, finite and 0 or more, not all 0.
        busy: "skip" draws among idle clients only, without replacement; "queue" among all, with replacement.

    Drawn by rejection (cost independent of the number of clients while weights are comparable), falling back to
    an exact scan when the weights are so uneven that rejection would take long. Both give the same distribution.
    """

    weights: tuple[float, ...]
    busy: Literal["skip", "queue"] = "skip"

    def __post_init__(self) -> None:
        bad = [(c, w) for c, w in enumerate(self.weights) if not (isfinite(w) and w >= 0)]
        if bad:
            raise ConfigError(
                f"sampler.weights[{bad[0][0]}] is {bad[0][1]}; weights must be finite and zero or positive."
            )
        if sum(self.weights) <= 0:
            raise ConfigError("sampler.weights are all zero, so nobody could ever be drawn; make one positive.")

    @property
    def queues(self) -> bool:
        return self.busy == "queue"

    @property
    def memory_type(self) -> Any:
        return tuple[float, float]

    def start(self) -> tuple[float, float]:
        return max(self.weights), sum(self.weights) / len(self.weights)

    def draw(self, memory: Any, view: View, k: int) -> tuple[list[int], tuple[float, float]]:
        largest, mean = memory
        pool = view.clients if self.queues else view.idle
        chosen: list[int] = []
        for _ in range(k):
            client = self._draw_one(pool, view.rng, largest, mean, [] if self.queues else chosen)
            if client is None:
                break
            chosen.append(client)
        return chosen, memory

    def _weight(self, client: int, mean: float) -> float:
        return self.weights[client] if client < len(self.weights) else mean

    def _draw_one(self, pool: ClientPool, rng: Stream, largest: float, mean: float, taken: list[int]) -> int | None:
        for _ in range(64 if len(pool) else 0):
            client = pool[rng.below(len(pool))]
            if rng.unit() * largest < self._weight(client, mean) and client not in taken:
                return client
        left = [pool[i] for i in range(len(pool)) if pool[i] not in taken]
        total = sum(self._weight(client, mean) for client in left)
        if total <= 0:
            return None
        mark = rng.unit() * total
        for client in left:
            mark -= self._weight(client, mean)
            if mark < 0:
                return client
        return max(left, key=lambda client: self._weight(client, mean))  # rounding let the mark run past the end

    def draw_weights(self, num_clients: int, tickets: int) -> tuple[float, ...]:
        """Each client's own; the mean for clients beyond the list."""
        mean = sum(self.weights) / len(self.weights)
        return tuple([self._weight(client, mean) for client in range(num_clients)])


@register("sampler")
class Fair(Config, tag_field="kind", tag="fair"):
    """Among idle clients, those with the fewest tickets so far; ties are broken at random.

    Uniform sampling draws fast clients more often, because they are idle more often. This keeps the numbers equal as
    far as slow clients can keep up; a client that joins late is preferred until it has caught up. The cost of a draw
    grows with the number of clients.
    """

    @property
    def queues(self) -> bool:
        return False

    @property
    def memory_type(self) -> Any:
        return tuple[float, ...]

    def start(self) -> tuple[float, ...]:
        return ()

    def draw(self, memory: Any, view: View, k: int) -> tuple[list[int], tuple[float, ...]]:
        counts = list(memory)
        idle = [view.idle[i] for i in range(len(view.idle))]
        counts.extend([0.0] * (max(idle, default=-1) + 1 - len(counts)))
        view.rng.shuffle(idle)
        chosen = sorted(idle, key=counts.__getitem__)[:k]
        for client in chosen:
            counts[client] += 1.0
        return chosen, tuple(counts)

    def draw_weights(self, num_clients: int, tickets: int) -> tuple[float, ...]:
        """There is no formula."""
        raise ConfigError(
            "the sampler fair makes the numbers of tickets equal as it goes, so every share tends to 1/C; how fast and "
            "how stale that is has no formula. Simulate it, or predict with uniform_idle or uniform_all."
        )
