"""A server that misbehaves on purpose and counts how often, of each kind: `misbehaving.py PORT KIND`.

- closing: closes after every fifth reply, without saying so
- breaking: of every seven requests one gets half a body, one no HTTP, one a 503, one a close without a reply
- silent: every fiftieth request gets no reply
"""

import asyncio
import json
import sys
from collections import Counter

COUNTS: Counter[str] = Counter()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\n"
WHOLE = HEAD + b"counted\n"
BROKEN = {
    1: ("short_body", HEAD + b"coun", True),
    2: ("parse", b"this is not HTTP at all\r\n\r\n", True),
    3: ("bad_status", WHOLE.replace(b"200 OK", b"503 Service Unavailable"), False),
    4: ("eof", b"", True),
}


def answer(kind: str, number: int) -> tuple[str, bytes | None, bool]:
    """Return how the account should name a request, its reply (none: never), and whether to close then."""
    if kind == "closing":
        return "ok", WHOLE, number % 5 == 0
    if kind == "breaking":
        return BROKEN.get(number % 7, ("ok", WHOLE, False))
    return ("timed_out", None, False) if number % 50 == 0 else ("ok", WHOLE, False)


async def serve(kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of a connection."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET /counts"):
                text = json.dumps(COUNTS).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(text) + text
                )
                break
            lines = head.lower().split(b"\r\n")
            length = next(
                (int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0
            )
            await reader.readexactly(length)
            COUNTS["requests"] += 1
            COUNTS["body_bytes"] += length
            name, reply, closes = answer(kind, COUNTS["requests"])
            COUNTS[name] += 1
            if reply is not None:
                writer.write(reply)
                await writer.drain()
            if closes or (reply is not None and b"connection: close" in lines):
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    """Serve until killed."""
    port, kind = int(sys.argv[1]), sys.argv[2]
    server = await asyncio.start_server(lambda *ends: serve(kind, *ends), "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


asyncio.run(main())
