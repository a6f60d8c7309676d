"""Pages without a browser, in a process of their own: `python -m benchmarks.dashboard_pages PORT TOKEN PAGES`.

Each follows the stream of a run `live.sqlite` and asks for all panels when it changed, over connections of its own.
When its input is closed it prints how many answers there were.
"""

from __future__ import annotations

import asyncio
import os
import sys

PANELS = ("", "/curves?points=600", "/staleness", "/clients?count=50", "/lanes?count=30&width=1000", "/refusals")
"""What a page asks for when its run has changed."""

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Pages:
    """So many pages of one dashboard."""

    def __init__(self, port: int, token: str) -> None:
        self.answers = 0
        self._port, self._token = port, token

    async def watch(self) -> None:
        """One page, until it is cancelled or the server ends."""
        stream, asking = await self._connect(), await self._connect()
        await self._ask(stream, "/api/stream?runs=live.sqlite")
        while line := await stream[0].readline():
            if line.startswith(b"event: change"):
                for panel in PANELS:
                    await self._ask(asking, f"/api/runs/live.sqlite{panel}")
                    await _read_answer(asking[0])
                    self.answers += 1

    async def _connect(self) -> Connection:
        return await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)

    async def _ask(self, connection: Connection, path: str) -> None:
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAuthorization: Bearer {self._token}\r\n\r\n"
        connection[1].write(head.encode())
        await connection[1].drain()


async def _read_answer(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    assert head.startswith(b"http/1.1 200"), head
    length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
    await reader.readexactly(length)


async def main(port: int, token: str, count: int) -> None:
    pages = Pages(port, token)
    watching = [asyncio.create_task(pages.watch()) for _ in range(count)]
    await asyncio.to_thread(sys.stdin.read)
    for page in watching:
        page.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    print(pages.answers)


if __name__ == "__main__":
    os.nice(19)  # pages are shown by other machines: what they take here is not to count against the run
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
