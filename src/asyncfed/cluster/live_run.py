"""A live run on a cluster: its processes planned, their data described, and the server's loop with their clients."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from ray import cloudpickle

from asyncfed.cluster.connection import Connection
from asyncfed.cluster.live_actors import ActorClient, ActorConnection, ActorProcess, SharedArrays
from asyncfed.cluster.live_host import ClientStart
from asyncfed.cluster.live_placement import plan_processes
from asyncfed.cluster.live_shards import DescribedShards, pickle_shards
from asyncfed.experiment import stored
from asyncfed.live.engine_protocol import EngineControl
from asyncfed.live.local.client_program import client_log
from asyncfed.live.local.server_loop import ServerLoop
from asyncfed.live.session import LiveSession
from asyncfed.problems.protocol import Problem, as_sharded_problem
from asyncfed.runs.problem_source import DescribedProblem, probe_digest

if TYPE_CHECKING:
    from asyncfed.cluster.live_engine import RayEngine


async def run_with_actors(
    engine: RayEngine,
    connection: Connection,
    session: LiveSession,
    problem: Problem,
    begin: Callable[[], None],
    control: EngineControl,
) -> None:
    """Start the actors, call `begin` when all are ready, and work until the session is finished or is to stop."""
    corrected, shared = session.sends_corrections(), SharedArrays()
    described, clients = _described(session, problem), []
    for plan in plan_processes(problem.num_clients, dict(engine.nodes), engine.clients_per_process):
        source = described or pickle_shards(
            as_sharded_problem(problem), plan.clients, engine.max_shard_bytes, cloudpickle.dumps
        )
        process = ActorProcess(
            connection, plan, source, shared, elsewhere=engine.elsewhere, seconds=engine.start_seconds
        )
        clients += [ActorClient(client, process) for client in plan.clients]

    async def open_client(client: ActorClient) -> ActorConnection:
        number = client.client
        first, log = session.first_model(number), client_log(session.file, number)
        start = ClientStart(number, first, engine.slowdown(number), session.uplinks, corrected, log)
        return client.open(start, lambda: session.max_result_bytes)

    clients.sort(key=lambda client: client.client)
    await ServerLoop(engine, session, clients, open_client, control, leaves_to_restart=True).run(begin)


def _described(session: LiveSession, problem: Problem) -> DescribedShards | None:
    """The experiment's description, if it describes the data; None if the problem was given in memory."""
    header = session.header
    if header["own_problem"]:
        return None
    experiment = stored(header["experiment"], session.file)
    return DescribedShards(DescribedProblem(experiment, os.getcwd(), header["problem"], probe_digest(problem)))
