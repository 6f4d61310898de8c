"""One page for each kind of work, over ASGI and without a framework: the same as `page`."""

import asyncio
import time

PATTERN = b"0123456789abcdef"
CHUNK = PATTERN * 64
CHUNKS = 16
SLEEP_S = 0.05
CPU_NS = 2_000_000


async def app(scope, receive, send):
    if scope["type"] == "http":
        page = PAGES.get((scope["method"], scope["path"]), not_found)
        await page(scope, receive, send)
    elif scope["type"] == "lifespan":
        await lifespan(receive, send)


async def lifespan(receive, send):
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def start(send, status, length=None):
    headers = [(b"content-type", b"text/plain")]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def reply(send, status, body):
    await start(send, status, len(body))
    await send({"type": "http.response.body", "body": body})


async def not_found(scope, receive, send):
    await reply(send, 404, b"not found\n")


def text(body):
    async def page(scope, receive, send):
        await reply(send, 200, body)

    return page


async def stream(scope, receive, send):
    await start(send, 200)
    for _ in range(CHUNKS):
        await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def echo(scope, receive, send):
    pieces = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            break
    await reply(send, 200, b"".join(pieces))


async def sleep(scope, receive, send):
    await asyncio.sleep(SLEEP_S)
    await reply(send, 200, b"slept\n")


async def cpu(scope, receive, send):
    # On the event loop, as an application that computes would: all other requests of the process wait.
    end = time.thread_time_ns() + asked_ns(scope.get("query_string", b""))
    while time.thread_time_ns() < end:
        pass
    await reply(send, 200, b"done\n")


def asked_ns(query):
    return int(query[3:]) * 1000 if query.startswith(b"us=") and query[3:].isdigit() else CPU_NS


PAGES = {
    ("GET", "/1k"): text(CHUNK),
    ("GET", "/64k"): text(PATTERN * 4096),
    ("GET", "/stream"): stream,
    ("POST", "/echo"): echo,
    ("GET", "/sleep"): sleep,
    ("GET", "/cpu"): cpu,
}
