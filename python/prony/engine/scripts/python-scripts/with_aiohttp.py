"""Coroutines that use aiohttp: one session, as many requests at once as there are workers.

As printed: a session for each coroutine, and bodies that nobody reads.
"""

import asyncio
import time

import aiohttp
from tally import Tally, merged


async def work(order, session, open_ns):
    """Make requests until the window closes, and return what was counted."""
    tally = Tally(order, open_ns)
    while tally.goes_on():
        begun_ns = time.monotonic_ns()
        try:
            async with session.request(
                order.method, order.url, headers=order.headers, data=order.body, allow_redirects=False
            ) as reply:
                tally.reply(begun_ns, reply.status, None if order.as_printed else await reply.read())
        except TimeoutError:
            tally.failure(begun_ns, "timed_out")
        except aiohttp.ClientConnectorError as error:
            refused = isinstance(error.os_error, ConnectionRefusedError)
            tally.failure(begun_ns, "connect_refused" if refused else "unspecified")
        except aiohttp.ClientError:
            tally.failure(begun_ns, "unspecified")
    return tally


async def work_alone(order, open_ns):
    """Make requests with a session of one's own."""
    async with session_of(order, 1) as session:
        return await work(order, session, open_ns)


def session_of(order, workers):
    connector = aiohttp.TCPConnector(limit=workers, force_close=not order.keep_alive)
    return aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=order.timeout_s))


async def work_together(order, workers, open_ns):
    """Run so many workers in this event loop, and return what they counted together."""
    if order.as_printed:
        return merged(await asyncio.gather(*(work_alone(order, open_ns) for _ in range(workers))))
    async with session_of(order, workers) as session:
        return merged(await asyncio.gather(*(work(order, session, open_ns) for _ in range(workers))))
