"""A client as the server sees it: its process, its connection, the tickets it holds."""

import asyncio
import subprocess
import sys

import numpy as np

from asyncfed.core.types import Dispatch, Work
from asyncfed.live.local.client_process import ClientProcess
from asyncfed.live.local.client_program import ClientSetup
from asyncfed.live.wire import Hello, Result, Task, dtype_name


class Session:
    """As much of a session as a client's process uses. `lost` are tickets that are not in flight any more."""

    lost = ()

    def is_in_flight(self, ticket):
        return ticket not in self.lost

    def make_task(self, dispatch):
        params = np.zeros(11)
        return Task("s", dispatch.ticket, 0, dispatch.work, 5, dtype_name(params.dtype)), {"model": params}


async def read_message(connection):
    message, _ = await connection.next_message()
    return message


def test_tickets_are_sent_one_at_a_time_and_lost_ones_are_not(small):
    problem, session = small().problem(), Session()
    client = ClientProcess(2)

    async def answers():
        connection = await client.start(ClientSetup(2, problem.shard(2), np.zeros(11)), lambda: 10_000)
        try:
            client.waiting.extend(Dispatch(ticket, 2, 0, Work()) for ticket in range(4))
            client.send_next(session)
            assert client.busy is None  # it has not said that it is ready
            assert await read_message(connection) == Hello(2)
            client.ready = True
            client.send_next(session)
            client.send_next(session)
            assert (client.busy, len(client.waiting)) == (0, 3)
            first = await read_message(connection)
            session.lost, client.busy = (1, 2), None
            client.send_next(session)
            assert (client.busy, len(client.waiting)) == (3, 0)
            return first, await read_message(connection)
        finally:
            client.stop()

    first, second = asyncio.run(answers())
    assert isinstance(first, Result)
    assert (first.ticket, second.ticket) == (0, 3)
    assert client.process is None
    assert not client.ready


OF_THE_SERVER = (
    *("analysis", "api", "certificates", "cli", "data", "delays", "engine", "experiment", "flower", "live.session"),
    *("presets", "report", "rules", "runs", "sim", "store", "strategies", "theory"),
)
HEAVY = {"matplotlib", "pandas", "rich", "typer", "torch", "sklearn", "pyarrow", "scipy.stats"}


def test_clients_are_forked_from_a_process_that_has_loaded_what_they_need_and_no_more():
    code = "import sys, asyncfed.live.local.preload; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "asyncfed.live.local.client_program" in loaded
    assert not [name for name in loaded if name.startswith(tuple(f"asyncfed.{room}" for room in OF_THE_SERVER))]
    assert not HEAVY & set(loaded)
