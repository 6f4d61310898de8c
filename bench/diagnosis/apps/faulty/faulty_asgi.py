"""One fault at each path, over ASGI: pages that would hold up the loop do so."""

import asyncio
import time

from faults import DONE, EVERYWHERE, be_late, compute, is_wrong, limit, number, sized


async def app(scope, receive, send):
    if scope["type"] == "http":
        await answer(scope["path"], scope["query_string"].decode(), send)
    elif scope["type"] == "lifespan":
        await lifespan(receive, send)


async def answer(path, query, send):
    if path == "/wrong" and is_wrong(number(query, 10)):
        await reply(send, 500, b"wrong\n")
    elif path == "/sized":
        await reply(send, 200, sized(number(query, 0)))
    elif path in PAGES:
        page, default = PAGES[path]
        await page(number(query, default))
        await reply(send, 200, DONE)
    else:
        await reply(send, 404, b"not found\n")


async def reply(send, status, body):
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def lifespan(receive, send):
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def held(page):
    async def run(number):
        page(number)

    return run


async def sleep(ms):
    await asyncio.sleep(ms / 1000)


async def block(ms):
    """Sleep, and let the whole loop sleep."""
    time.sleep(ms / 1000)


async def wrong(_):
    pass


PAGES = {
    **{path: (held(page), default) for path, (page, default) in EVERYWHERE.items()},
    **{"/sleep": (sleep, 20), "/block": (block, 20), "/wrong": (wrong, 10)},
}

limit()
be_late()
compute()
