"""A server that counts all that it is asked: `server.py FOLDER CERTIFICATE KEY`.

It speaks HTTP/1 (also over TLS, over a Unix socket in the folder, and as a proxy), FastCGI, uwsgi and SCGI,
and prints its ports as JSON. Each line of its input is a mode, in which it begins to count anew; to `?` it
answers with its counts. What it replies is a function of the path and the mode alone:

- `/r/N`: N times 37, modulo 4000, bytes, in a form by N modulo 4; `?s=404` has that status
- `/hop/K/N`: a redirect to `/hop/K-1/N`; with a K of 0 as `/r/N`
- well: at once; slow: after up to 5 ms; closing: closes after each fifth reply without saying so
- breaking: of seven requests one gets half a body, one no HTTP, one a 503, one a close without a reply
- silent: each fiftieth request gets no reply
"""

import asyncio
import hashlib
import json
import ssl
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter
REASONS = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}


class Asked(NamedTuple):
    """A request, and how its reply is framed."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    keeps: bool
    frame: Callable[["Asked", int, bytes], bytes]
    version: str = "HTTP/1.1"

    @property
    def key(self) -> str:
        """What tells it from others."""
        own = (self.headers.get(name, "") for name in ("x-own", "x-group", "cookie"))
        return "|".join((self.method, self.path, hashlib.sha256(self.body).hexdigest()[:8], *own))


class Counts:
    """What was counted since the mode began."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.plain: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.most_on_a_connection = 0

    def text(self) -> str:
        """As JSON."""
        return json.dumps({**vars(self)})


NOW = Counts("well")


async def of_http(reader: Reader, writer: Writer) -> Asked:
    """Read a request of HTTP/1."""
    line, *fields = (await reader.readuntil(b"\r\n\r\n"))[:-4].decode("latin-1").split("\r\n")
    method, target, version = line.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    words = [word.strip().lower() for word in headers.get("connection", "").split(",")]
    keeps = "close" not in words if version == "HTTP/1.1" else "keep-alive" in words
    body = b""
    if "transfer-encoding" in headers:
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    path = target if target.startswith("/") else "/" + target.split("/", 3)[3]
    return Asked(method, path, headers, body, keeps, as_http, version)


def as_http(asked: Asked, status: int, body: bytes) -> bytes:
    """A reply of HTTP/1 in one of four forms."""
    form = int(asked.path.partition("?")[0].rpartition("/")[2]) % 4 if asked.version == "HTTP/1.1" else 0
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n" * 2 if form == 2 else b""
    lines = [f"{asked.version} {status} {REASONS.get(status, 'Other')}", *redirect(asked, status)]
    if asked.version == "HTTP/1.0" and asked.keeps:
        lines.append("Connection: keep-alive")
    is_chunked = form in (1, 3) and asked.method != "HEAD"
    lines.append("Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {len(body)}")
    head = early + "\r\n".join((*lines, "", "")).encode()
    if asked.method == "HEAD":
        return head
    if not is_chunked:
        return head + body
    pieces = (body[at : at + 1000] for at in range(0, len(body), 1000))
    extension = b";a=b" if form == 3 else b""
    chunks = (b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces)
    return head + b"".join(chunks) + b"0\r\n" + (b"X-Sum: 1\r\n" if form == 3 else b"") + b"\r\n"


def redirect(asked: Asked, status: int) -> list[str]:
    """Where it leads on."""
    if status not in (301, 302, 307):
        return []
    _, hop, left, number = asked.path.split("/")
    return [f"Location: /{hop}/{int(left) - 1}/{number}"]


def of_variables(pairs: dict[str, str], body: bytes, keeps: bool, frame: Callable[..., bytes]) -> Asked:
    """A request by its variables of CGI."""
    headers = {
        name[5:].lower().replace("_", "-"): value for name, value in pairs.items() if name[:5] == "HTTP_"
    }
    return Asked(pairs["REQUEST_METHOD"], pairs["REQUEST_URI"], headers, body, keeps, frame)


def as_cgi(asked: Asked, status: int, body: bytes) -> bytes:
    """A reply of CGI, up to the close."""
    head = f"Status: {status} {REASONS.get(status, 'Other')}\r\nContent-Type: text/plain\r\n\r\n".encode()
    return head + (b"" if asked.method == "HEAD" else body)


def as_uwsgi(asked: Asked, status: int, body: bytes) -> bytes:
    """As uWSGI answers: HTTP, up to the close."""
    head = f"HTTP/1.1 {status} {REASONS.get(status, 'Other')}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    return head + (b"" if asked.method == "HEAD" else body)


async def of_scgi(reader: Reader, writer: Writer) -> Asked:
    """Read a request of SCGI."""
    size = int((await reader.readuntil(b":"))[:-1])
    words = (await reader.readexactly(size + 1))[:-2].decode("latin-1").split("\0")
    pairs = dict(zip(words[::2], words[1::2], strict=True))
    return of_variables(pairs, await reader.readexactly(int(pairs["CONTENT_LENGTH"] or 0)), False, as_cgi)


async def of_uwsgi(reader: Reader, writer: Writer) -> Asked:
    """Read a request of uwsgi."""
    rest = await reader.readexactly(int.from_bytes((await reader.readexactly(4))[1:3], "little"))
    words = []
    while rest:
        size = int.from_bytes(rest[:2], "little")
        words.append(rest[2 : 2 + size].decode("latin-1"))
        rest = rest[2 + size :]
    pairs = dict(zip(words[::2], words[1::2], strict=True))
    return of_variables(
        pairs, await reader.readexactly(int(pairs.get("CONTENT_LENGTH") or 0)), False, as_uwsgi
    )


async def of_fastcgi(reader: Reader, writer: Writer) -> Asked:
    """Read a request of FastCGI."""
    streams, flags, ended = {4: b"", 5: b""}, 0, False
    while not ended:
        head = await reader.readexactly(8)
        content = (await reader.readexactly(int.from_bytes(head[4:6]) + head[6]))[: int.from_bytes(head[4:6])]
        if head[1] == 1:
            flags = content[2]
        else:
            streams[head[1]] += content
            ended = head[1] == 5 and not content
    words, rest = [], streams[4]
    while rest:
        sizes = []
        for _ in range(2):
            wide = 4 if rest[0] & 128 else 1
            sizes.append(int.from_bytes(rest[:wide]) & 0x7FFFFFFF)
            rest = rest[wide:]
        for size in sizes:
            words.append(rest[:size].decode("latin-1"))
            rest = rest[size:]
    pairs = dict(zip(words[::2], words[1::2], strict=True))
    return of_variables(pairs, streams[5], bool(flags & 1), as_fastcgi)


def as_fastcgi(asked: Asked, status: int, body: bytes) -> bytes:
    """A reply in records, some with padding, and something on the stream of errors."""

    def record(kind: int, content: bytes, padding: int = 0) -> bytes:
        return bytes([1, kind, 0, 1, *len(content).to_bytes(2), padding, 0]) + content + bytes(padding)

    text = as_cgi(asked, status, body)
    pieces = [record(6, text[at : at + 700], at % 3) for at in range(0, len(text), 700)]
    return b"".join([pieces[0], record(7, b"a warning"), *pieces[1:], record(6, b""), record(3, bytes(8))])


def outcome(asked: Asked, number: int) -> tuple[str, int]:
    """How the account should name the request, and its status."""
    path, _, query = asked.path.partition("?")
    words = path.split("/")
    status = int(query.partition("s=")[2] or 200)
    if words[1] == "hop" and words[2] != "0":
        status = (301, 302, 307)[int(words[2]) % 3]
    broken = {1: "short_body", 2: "parse", 3: "503", 4: "eof"}
    kind = broken.get(number % 7, "whole") if NOW.mode == "breaking" else "whole"
    if kind == "short_body" and asked.method == "HEAD":
        # Its reply has no body.
        kind = "whole"
    if NOW.mode == "silent" and number % 50 == 0:
        kind = "timed_out"
    return kind, 503 if kind == "503" else status


async def serve(read: Callable[[Reader, Writer], Awaitable[Asked]], reader: Reader, writer: Writer) -> None:
    """Answer the requests of a connection."""
    counts, here = NOW, writer.get_extra_info("sockname")
    counts.plain["connections"] += 1
    if isinstance(here, tuple):
        counts.plain[f"to {here[0]}"] += 1
    try:
        for number in count(1):
            asked = await read(reader, writer)
            counts.most_on_a_connection = max(counts.most_on_a_connection, number)
            if not await answered(asked, writer) or not asked.keeps:
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def answered(asked: Asked, writer: Writer) -> bool:
    """Count a request and answer it. Return whether the connection may go on."""
    counts, peer = NOW, writer.get_extra_info("peername")
    counts.plain["requests"] += 1
    counts.asked[asked.key] += 1
    counts.plain["body_bytes"] += len(asked.body)
    if isinstance(peer, tuple):
        counts.plain[f"from {peer[0]} {asked.headers.get('x-group', '')}"] += 1
    number = counts.plain["requests"]
    if counts.mode == "slow":
        await asyncio.sleep(number % 6 / 1000)
    kind, status = outcome(asked, number)
    body = b"x" * (int(asked.path.partition("?")[0].rpartition("/")[2]) * 37 % 4000)
    counts.plain[kind] += 1
    if kind == "timed_out":
        return True
    if kind == "short_body":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
    elif kind == "parse":
        writer.write(b"this is not HTTP at all\r\n\r\n")
    elif kind != "eof":
        counts.statuses[status] += 1
        counts.plain["sent_bytes"] += 0 if asked.method == "HEAD" else len(body)
        writer.write(asked.frame(asked, status, body))
        await writer.drain()
    return kind in ("whole", "503") and not (counts.mode == "closing" and number % 5 == 0)


async def proxied(reader: Reader, writer: Writer) -> Asked:
    """Read a request for a proxy, which answers it itself; a tunnel leads to where it shall."""
    head = await reader.readuntil(b"\r\n\r\n")
    if head.startswith(b"CONNECT "):
        host, _, port = head.split(b" ")[1].decode().rpartition(":")
        NOW.plain["connections"] -= 1
        other, others = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(piped(reader, others), piped(other, writer))
        raise ConnectionError
    again = asyncio.StreamReader()
    again.feed_data(head)
    return await of_http(Joined(again, reader), writer)  # type: ignore[arg-type]


class Joined:
    """What was read of a head already, and what comes behind it."""

    def __init__(self, head: Reader, rest: Reader) -> None:
        self.readuntil = head.readuntil
        self.readexactly, self.readline = rest.readexactly, rest.readline


async def piped(reader: Reader, writer: Writer) -> None:
    """Hand on all that comes."""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def main() -> None:
    """Serve until the input ends."""
    global NOW  # noqa: PLW0603 - the whole server has one mode
    folder, certificate, key = sys.argv[1:]
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    tls.set_alpn_protocols(["http/1.1"])
    ports = {}
    for name, read, context in (
        ("http", of_http, None), ("https", of_http, tls), ("proxy", proxied, None),
        ("fcgi", of_fastcgi, None), ("uwsgi", of_uwsgi, None), ("scgi", of_scgi, None),
    ):  # fmt: skip
        handle = lambda *ends, read=read: serve(read, *ends)  # noqa: E731 - of this name
        server = await asyncio.start_server(handle, "0.0.0.0", 0, ssl=context, backlog=4096)  # noqa: S104 - all of 127.0.0.0/8
        ports[name] = server.sockets[0].getsockname()[1]
        path = Path(folder, f"{name}.sock")
        if context is None and name != "proxy":
            await asyncio.start_unix_server(handle, path, backlog=4096)
    print(json.dumps(ports), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        if line.strip() == "?":
            print(NOW.text(), flush=True)
        else:
            NOW = Counts(line.strip())


asyncio.run(main())
