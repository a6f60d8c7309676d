"""Who works next. A sampler is a frozen value: `start()` gives its memory, `draw` takes it and gives it back.

`draw(memory, view, k)` answers with at most k clients; fewer when there are not enough. A sampler that `queues` may
name busy clients: they keep the ticket in their queue and work on it later, from the model handed out with it.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal, TypeAlias

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, Record
from asyncfed.core.types import Pool, Rng, View


def distinct_positions(rng: Rng, n: int, k: int) -> list[int]:
    """k different whole numbers below n, in random order, at a cost of k (a Fisher-Yates shuffle kept sparse)."""
    moved: dict[int, int] = {}
    chosen = []
    for i in range(min(k, n)):
        j = i + rng.below(n - i)
        chosen.append(moved.get(j, j))
        moved[j] = moved.get(i, i)
    return chosen


class UniformIdle(Config, tag_field="kind", tag="uniform_idle"):
    """Uniform without replacement among the idle clients: the paper's sampling."""

    @property
    def queues(self) -> bool:
        return False

    def start(self) -> None:
        return None

    def draw(self, memory: Any, view: View, k: int) -> tuple[list[int], None]:
        idle, count = view.idle, len(view.idle)
        if k == 1 and count:
            return [idle[view.rng.below(count)]], None
        return [idle[place] for place in distinct_positions(view.rng, count, k)], None


class UniformAll(Config, tag_field="kind", tag="uniform_all"):
    """Uniform over all clients, busy or not: a busy one queues the ticket (queueing analyses of asynchronous SGD)."""

    @property
    def queues(self) -> bool:
        return True

    def start(self) -> None:
        return None

    def draw(self, memory: Any, view: View, k: int) -> tuple[list[int], None]:
        clients = view.clients
        n = len(clients)
        return [clients[view.rng.below(n)] for _ in range(k if n else 0)], None


class ShortestQueue(Config, tag_field="kind", tag="shortest_queue"):
    """Whoever holds the fewest tickets, ties drawn uniformly, nobody more than `depth`: work fetched ahead.

    A client then goes on at once with the next ticket while its last report travels. Costs as much as there are
    clients whenever nobody is idle.
    """

    depth: int = 2

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise ConfigError(f"sampler.depth is {self.depth}; a client must be able to hold at least 1 ticket.")

    @property
    def queues(self) -> bool:
        return self.depth > 1

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


class Cycle(Record):
    """Where a cyclic sampler is: the order of this cycle, how far it got, and whom it had to pass over as busy."""

    order: tuple[int, ...] = ()
    position: int = 0
    passed_over: tuple[int, ...] = ()


class ShuffledCycle(Config, tag_field="kind", tag="shuffled_cycle"):
    """Each client once per cycle, in an order shuffled anew each time; who is busy at its turn comes when idle."""

    @property
    def queues(self) -> bool:
        return False

    def start(self) -> Cycle:
        return Cycle()

    def draw(self, memory: Any, view: View, k: int) -> tuple[list[int], Cycle]:
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
                order, position = self._shuffled(view), 0
            client, position = order[position], position + 1
            if client in view.idle and client not in chosen:
                chosen.append(client)
            elif client in view.clients:
                waiting.append(client)
        return chosen, Cycle(order, position, tuple(waiting))

    def _shuffled(self, view: View) -> tuple[int, ...]:
        order = sorted(view.clients[i] for i in range(len(view.clients)))
        view.rng.shuffle(order)
        return tuple(order)


class Weighted(Config, tag_field="kind", tag="weighted"):
    """Client c with probability proportional to `weights[c]`; a client beyond the list counts as the mean weight.

    `busy = "skip"`: only among idle clients, without replacement. `busy = "queue"`: among all, with replacement.
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

    def _draw_one(self, pool: Pool, rng: Rng, largest: float, mean: float, taken: list[int]) -> int | None:
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


class Fair(Config, tag_field="kind", tag="fair"):
    """Among idle clients, those who were handed the fewest tickets so far; who comes first among equals is drawn.

    Uniform sampling hears fast clients more often, for they are idle more often. This evens the numbers out as far as
    slow clients can keep up; who joins late is preferred until it has caught up. Its cost grows with the number of
    clients.
    """

    @property
    def queues(self) -> bool:
        return False

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


SamplerMemory: TypeAlias = Cycle | tuple[float, ...] | None
Sampler: TypeAlias = UniformIdle | UniformAll | ShortestQueue | ShuffledCycle | Weighted | Fair
