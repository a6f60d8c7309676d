"""RayEngine: the description of a live run on a Ray cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from asyncfed.cluster.connection import AUTO, Connection, load_ray
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.live.engine_protocol import EngineControl
from asyncfed.live.local.client_program import Slowdown
from asyncfed.live.local.local_engine import LocalEngine
from asyncfed.live.session import LiveSession
from asyncfed.problems.protocol import Problem


class RayEngine(Config, tag_field="kind", tag="ray"):
    """Runs every client as an actor on a node of a Ray cluster; for trusted clusters only, see docs/cluster.md.

    Each node makes its clients' data from the experiment's description, or reads them at the path it names; data are
    not sent, unless the problem was given in memory.

    Args:
        address: of the cluster, as HOST:PORT; "auto" is the one that runs on this machine or that RAY_ADDRESS names.
        nodes: which client is on which node, as (client, node): `((3, "10.0.0.7"),)`. A node is named by its id, its
            address or a custom resource that it offers; clients not named are spread over all nodes.
        elsewhere: whether a client whose named node is gone is started on another one. If not, it waits for its node.
        clients_per_process: so many clients of a node share a process, and train one at a time; 1 or more. A process
            takes some 100 MB.
        slow: as that of `LocalEngine`: clients to be slowed down for a demonstration.
        task_seconds: the least time any task takes, in seconds; 0 or more.
        drain_seconds: how long an interrupted server waits for what is being computed, in seconds; 0 or more.
        start_seconds: how long a client may take to start, its node's return included, in seconds; 0 or more.
        restarts: a client whose process ends is started again; one that ends more often than this in a row, without an
            answer, has left for good; 0 or more.
        max_shard_bytes: a client's part of a problem given in memory may have so many bytes, pickled; 0 or more.
    """

    address: str = AUTO
    nodes: tuple[tuple[int, str], ...] = ()
    elsewhere: bool = False
    clients_per_process: int = 1
    slow: tuple[tuple[int, float], ...] = ()
    task_seconds: float = 0.0
    drain_seconds: float = 5.0
    start_seconds: float = 120.0
    restarts: int = 5
    max_shard_bytes: int = 256 * 2**20

    def __post_init__(self) -> None:
        self._as_local()
        if self.clients_per_process < 1:
            raise ConfigError(f"clients_per_process is {self.clients_per_process}; it must be 1 or more.")
        if self.max_shard_bytes < 0:
            raise ConfigError(f"max_shard_bytes is {self.max_shard_bytes}; it must be zero or a positive number.")
        named = [client for client, _ in self.nodes]
        twice = [client for client in named if named.count(client) > 1]
        if twice:
            raise ConfigError(f"nodes names client {twice[0]} twice; a client is on one node.")
        if self.address.startswith("ray://"):
            raise ConfigError(
                f'The address "{self.address}" is that of a Ray client server. Run this on a machine of the cluster, '
                'with the address "auto", or give the HOST:PORT that `ray start --head` printed.'
            )

    def _as_local(self) -> LocalEngine:
        """The settings that both engines have, which are checked in one place."""
        return LocalEngine(
            slow=self.slow,
            task_seconds=self.task_seconds,
            drain_seconds=self.drain_seconds,
            start_seconds=self.start_seconds,
            restarts=self.restarts,
        )

    def check(self, problem: Problem) -> None:
        """Refuse a problem that cannot be taken apart, clients that do not exist, and a machine without Ray."""
        self._as_local().check(problem)
        wrong = [client for client, _ in self.nodes if not 0 <= client < problem.num_clients]
        if wrong:
            raise ConfigError(f"nodes names client {wrong[0]}; clients are numbered 0 to {problem.num_clients - 1}.")
        load_ray()

    def absent(self, num_clients: int) -> tuple[int, ...]:
        """None: the run begins when all actors are ready."""
        return ()

    def slowdown(self, client: int) -> Slowdown:
        """How slow this client is made."""
        return self._as_local().slowdown(client)

    def drive(self, session: LiveSession, problem: Problem, begin: Callable[[], None], control: EngineControl) -> None:
        """Connect to the cluster, start the actors, and run the session with them."""
        with Connection(self.address) as connection:
            from asyncfed.cluster.live_run import run_with_actors  # which imports Ray

            asyncio.run(run_with_actors(self, connection, session, problem, begin, control))
