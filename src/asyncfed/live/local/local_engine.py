"""LocalEngine: the description of a live run on one machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import isfinite

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.live.engine_protocol import EngineControl
from asyncfed.live.local.client_process import ClientProcess, Sharing
from asyncfed.live.local.client_program import ClientSetup, Slowdown, client_log
from asyncfed.live.local.connection import Connection
from asyncfed.live.local.server_loop import ServerLoop
from asyncfed.live.local.shared_memory import SharedModels
from asyncfed.live.session import LiveSession
from asyncfed.problems.protocol import Problem, as_sharded_problem


class LocalEngine(Config, tag_field="kind", tag="local"):
    """Runs every client as a process of this machine.

    Args:
        slow: Clients to be slowed down for a demonstration, as (client, factor): `((3, 10.0),)` makes client 3 take ten
            times as long; factors are 1 or more.
        task_seconds: The least time any task takes, in seconds; 0 or more.
        drain_seconds: How long an interrupted server waits for what is being computed, in seconds; 0 or more.
        start_seconds: How long processes may take to start, in seconds; 0 or more.
        restarts: A process that ends is started again; one that ends more often than this in a row, without an answer,
            has left; 0 or more.
        shared_bytes: Models and results of so many bytes or more lie in memory that server and clients share, where
            the system has such memory (Linux); shorter ones pass through sockets; 1 or more, None for sockets only.
    """

    slow: tuple[tuple[int, float], ...] = ()
    task_seconds: float = 0.0
    drain_seconds: float = 5.0
    start_seconds: float = 120.0
    restarts: int = 5
    shared_bytes: int | None = 2**18

    def __post_init__(self) -> None:
        for client, times in self.slow:
            if not (isfinite(times) and times >= 1.0):
                raise ConfigError(f"slow says client {client} takes {times} times as long; it must be 1 or more.")
        for name in ("task_seconds", "drain_seconds", "start_seconds", "restarts"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be zero or a positive number.")
        if self.shared_bytes is not None and self.shared_bytes < 1:
            raise ConfigError(f"shared_bytes is {self.shared_bytes}; it must be 1 or more, or None to share nothing.")

    def check(self, problem: Problem) -> None:
        """Refuse a problem whose clients cannot be given their own data alone, and settings for clients it has not."""
        wrong = [client for client, _ in self.slow if not 0 <= client < problem.num_clients]
        if wrong:
            raise ConfigError(f"slow names client {wrong[0]}; clients are numbered 0 to {problem.num_clients - 1}.")
        as_sharded_problem(problem)

    def absent(self, num_clients: int) -> tuple[int, ...]:
        """None: the run begins when all processes are ready."""
        return ()

    def slowdown(self, client: int) -> Slowdown:
        """How slow this client is made."""
        return Slowdown(dict(self.slow).get(client, 1.0), self.task_seconds)

    def drive(self, session: LiveSession, problem: Problem, begin: Callable[[], None], control: EngineControl) -> None:
        """Start the processes and run the session with them until it is finished or `control` says stop."""
        sharded, corrected = as_sharded_problem(problem), session.sends_corrections()

        async def open_client(client: ClientProcess) -> Connection:
            number = client.client
            shard, first, slowdown = sharded.shard(number), session.first_model(number), self.slowdown(number)
            log = client_log(session.file, number)
            setup = ClientSetup(number, shard, first, slowdown, session.uplinks, corrected, log)
            return await client.start(setup, lambda: session.max_result_bytes)

        sharing = self._share_memory(session, problem.num_clients)
        clients = [ClientProcess(client, sharing) for client in range(problem.num_clients)]
        try:
            asyncio.run(ServerLoop(self, session, clients, open_client, control).run(begin))
        finally:
            if sharing is not None:
                sharing.models.close()

    def _share_memory(self, session: LiveSession, num_clients: int) -> Sharing | None:
        """Put the model where clients can read it; None if it is small, or the system cannot do that."""
        model_bytes = session.state.params.nbytes
        if self.shared_bytes is None or model_bytes < self.shared_bytes:
            return None
        models = SharedModels.create(model_bytes, num_clients)
        if models is None:
            return None
        session.keep_models_in(models)
        return Sharing(models, session.expected_result_bytes, self.shared_bytes)
