"""LocalEngine: the description of a live run on one machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import isfinite
from typing import cast

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.live.engine_protocol import Orders
from asyncfed.live.local.client_program import Pace
from asyncfed.live.local.server_loop import Hub
from asyncfed.live.session import LiveSession
from asyncfed.problems.protocol import Problem, ShardedProblem


class LocalEngine(Config, tag_field="kind", tag="local"):
    """Every client a process of this machine.

    `slow` makes clients slower for a demonstration: `((3, 10.0),)` is client 3, ten times. `task_seconds` is the least
    time any job takes. When interrupted, the server waits `drain_seconds` for what is being computed. A process that
    ends is started anew; one that ends `restarts` times in a row without an answer is given up.
    """

    slow: tuple[tuple[int, float], ...] = ()
    task_seconds: float = 0.0
    drain_seconds: float = 5.0
    start_seconds: float = 120.0
    restarts: int = 5

    def __post_init__(self) -> None:
        for client, times in self.slow:
            if not (isfinite(times) and times >= 1.0):
                raise ConfigError(f"slow says client {client} takes {times} times as long; it must be 1 or more.")
        for name in ("task_seconds", "drain_seconds", "start_seconds", "restarts"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be zero or a positive number.")

    def check(self, problem: Problem) -> None:
        wrong = [client for client, _ in self.slow if not 0 <= client < problem.num_clients]
        if wrong:
            raise ConfigError(f"slow names client {wrong[0]}; clients are numbered 0 to {problem.num_clients - 1}.")
        if not isinstance(problem, ShardedProblem):
            raise ConfigError(
                f"{type(problem).__name__} has no `shard(client)`, so no client can be given its own data alone. "
                "Add it (see asyncfed.problems.ShardedProblem), or simulate the run."
            )

    def absent(self, num_clients: int) -> tuple[int, ...]:
        """Nobody: the run begins when all processes are there."""
        return ()

    def pace(self, client: int) -> Pace:
        return Pace(dict(self.slow).get(client, 1.0), self.task_seconds)

    def drive(self, session: LiveSession, problem: Problem, begin: Callable[[], None], orders: Orders) -> None:
        asyncio.run(Hub(self, session, cast(ShardedProblem, problem), orders).run(begin))
