"""A relay between a worker and whoever reaches it: each way takes up to so much longer, by itself.

    relay.py ADDRESS PORT TO MS

Order is kept, so a short way waits for a long one before it.
"""

import asyncio
import contextlib
import random
import sys

_MOST_BYTES = 65536


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter, way_s: float) -> None:
    """Pass on what comes, each piece as late as it was drawn."""
    due: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def deliver() -> None:
        while True:
            at_s, data = await due.get()
            await asyncio.sleep(max(0.0, at_s - loop.time()))
            if not data:
                return
            sink.write(data)
            await sink.drain()

    delivery = asyncio.create_task(deliver())
    with contextlib.suppress(OSError):
        while data := await source.read(_MOST_BYTES):
            await due.put((loop.time() + random.uniform(0, way_s), data))  # noqa: S311 - no secret
    await due.put((loop.time() + way_s, b""))
    with contextlib.suppress(OSError):
        await delivery
    sink.close()


async def main() -> None:
    """Serve until it is killed."""
    address, port, to, way_ms = sys.argv[1:]
    way_s = float(way_ms) / 1000

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(address, int(to))
        await asyncio.gather(_pass_on(reader, there[1], way_s), _pass_on(there[0], writer, way_s))

    server = await asyncio.start_server(meet, address, int(port))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
