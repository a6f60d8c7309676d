"""Where a client on another machine has its data from: the experiment's description, or the problem in memory."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import NamedTuple, Protocol

from asyncfed.core.errors import ConfigError
from asyncfed.problems.protocol import ClientShard, ShardedProblem, as_sharded_problem
from asyncfed.runs.problem_source import DescribedProblem


class ShardSource(Protocol):
    """Gives each client of one process its own data. It is made by the server and used on the client's node."""

    def shards(self, clients: tuple[int, ...]) -> dict[int, ClientShard]:
        """The data of these clients, and nothing of others."""
        ...


class GivenShards(NamedTuple):
    """Data of a problem that the server was given in memory, pickled by it: they travel with the start of a process."""

    pickled: dict[int, bytes]

    def shards(self, clients: tuple[int, ...]) -> dict[int, ClientShard]:
        """Unpickle what was sent."""
        return {client: pickle.loads(self.pickled[client]) for client in clients}


class DescribedShards(NamedTuple):
    """Data are generated, or read from the path the experiment names, on the node itself; nothing is sent."""

    described: DescribedProblem

    def shards(self, clients: tuple[int, ...]) -> dict[int, ClientShard]:
        """Make the whole problem, take these clients' parts, and forget the rest."""
        problem = as_sharded_problem(self.described.make())
        copies = {client: pickle.dumps(problem.shard(client)) for client in clients}  # a view would keep all rows
        return GivenShards(copies).shards(clients)


def pickle_shards(
    problem: ShardedProblem, clients: tuple[int, ...], max_bytes: int, dumps: Callable[[object], bytes]
) -> GivenShards:
    """The shards of these clients as bytes, made by `dumps`; refused if one is larger than `max_bytes`."""
    pickled = {}
    for client in clients:
        pickled[client] = dumps(problem.shard(client))
        if len(pickled[client]) > max_bytes:
            raise ConfigError(
                f"The problem was given in memory, and client {client}'s part of it has {len(pickled[client]):,} "
                f"bytes; at most {max_bytes:,} are sent to another machine. Describe the data in the experiment, so "
                "that each node makes or reads its own, or set max_shard_bytes of the engine."
            )
    return GivenShards(pickled)
