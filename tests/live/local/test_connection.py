"""What a connection receives belongs to whoever was given it."""

import asyncio
from weakref import ref

import numpy as np

from asyncfed.live.local.connection import Connection, connected_sockets
from asyncfed.live.wire import Result, encode

MODEL = np.arange(10**6, dtype=np.float32)  # more than is read at once


def test_a_body_that_was_delivered_is_not_kept_until_the_next_one_arrives():
    """Else a server would keep a model of each of its clients."""

    async def receive():
        ours, theirs = connected_sockets()
        connection = await Connection.open(ours, lambda: MODEL.nbytes)
        result = Result("name", 0, 0.0, 1, "<f4")
        loop = asyncio.get_running_loop()
        theirs.setblocking(False)
        for piece in encode(result, {"model": MODEL}):
            await loop.sock_sendall(theirs, piece)
        message, body = await connection.next_message()
        assert (message, bytes(body)) == (result, MODEL.tobytes())
        kept = ref(body)
        del body
        assert kept() is None
        connection.close()
        theirs.close()

    asyncio.run(receive())
