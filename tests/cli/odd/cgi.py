"""Odd and legal applications behind FastCGI, SCGI and uwsgi; from RFC 3875 and the protocols' own pages."""

import struct
from dataclasses import dataclass

from cli.odd.http1 import HEAD, UPLOAD, close, end, linger, stay

STDOUT, STDERR, UNKNOWN_TYPE = 6, 7, 11
PAGE = b"Content-Type: text/plain\r\n\r\nok"
SIZED = b"Content-Length: 2\r\n\r\nok"
OVERLOADED, NO_ROLE = 2, 3


def record(kind, content, padding=0, request=1):
    return struct.pack(">BBHHBx", 1, kind, request, len(content), padding) + content + bytes(padding)


MANAGEMENT = record(UNKNOWN_TYPE, bytes(8), request=0)


def over(status=0, protocol=0):
    return record(3, struct.pack(">IB3x", status, protocol))


def output(text, size=1000, **more):
    return b"".join(record(STDOUT, text[start : start + size], **more) for start in range(0, len(text), size))


def ask_fastcgi(peer, ahead=False):
    """Read a request, or as far as its body; whether its connection is to be kept."""
    kept = False
    while True:
        _, kind, _, size, padding = struct.unpack(">BBHHBx", peer.exactly(8))
        content = peer.exactly(size + padding)[:size]
        kept |= kind == 1 and content[2] == 1
        if ((kind, size) == (4, 0) and ahead) or (kind, size) == (5, 0):
            return kept


def body_of(variables, separator=b"\0"):
    names = variables.split(separator)
    return int(names[names.index(b"CONTENT_LENGTH") + 1] or 0)


def ask_scgi(peer):
    size = b""
    while not size.endswith(b":"):
        size += peer.exactly(1)
    peer.body_left = body_of(peer.exactly(int(size[:-1]) + 1))


def ask_uwsgi(peer):
    _, size, _ = struct.unpack("<BHB", peer.exactly(4))
    variables, words = peer.exactly(size), []
    while variables:
        (size,) = struct.unpack_from("<H", variables)
        words.append(variables[2 : 2 + size])
        variables = variables[2 + size :]
    known = dict(zip(words[::2], words[1::2], strict=True))
    peer.body_left = int(known.get(b"CONTENT_LENGTH") or 0)


@dataclass(frozen=True)
class Odd:
    """``scheme``: how the load's URL begins."""

    scheme: str
    handle: object
    typed: tuple = ()


def fastcgi(text, body=2, kind="ok", then=stay, cut=0, typed=(), ahead=False):
    """An application that always answers the same; ``ahead``: before it has read the body."""

    def handle(peer):
        while True:
            ask_fastcgi(peer, ahead)
            peer.count("requests")
            peer.reply(text, body, kind, cut)
            if ahead:
                ask_fastcgi(peer)
            then(peer)

    return Odd("fcgi", handle, typed)


def once(scheme, text, body=2, kind="ok", then=close, cut=0, typed=(), ahead=False):
    """An application behind SCGI or uwsgi: a connection a request."""
    ask = ask_scgi if scheme == "scgi" else ask_uwsgi

    def handle(peer):
        ask(peer)
        peer.count("requests")
        if not ahead:
            peer.read_body()
        peer.reply(text, body, kind, cut)
        if ahead:
            peer.read_body()
        then(peer)

    return Odd(scheme, handle, typed)


def _behind_both(name, *arguments, **more):
    return {f"{scheme}: {name}": once(scheme, *arguments, **more) for scheme in ("scgi", "uwsgi")}


BEHAVIOURS = {
    "records of one byte": fastcgi(output(PAGE, 1) + over()),
    "records of one byte, byte by byte": fastcgi(output(PAGE, 1) + over(), cut=1),
    "records with padding": fastcgi(output(PAGE, 9, padding=255) + over()),
    "errors before, between and behind": fastcgi(
        b"".join(record(STDERR, b"odd\n") + piece for piece in (output(PAGE[:9]), output(PAGE[9:]), b""))
        + over()
    ),
    "both streams end": fastcgi(output(PAGE) + record(STDOUT, b"") + record(STDERR, b"") + over()),
    "records of management": fastcgi(
        MANAGEMENT + output(PAGE[:9]) + MANAGEMENT + output(PAGE[9:]) + MANAGEMENT + over()
    ),
    "a program that fails behind its page": fastcgi(output(PAGE) + over(status=1)),
    "lines that end in LF": fastcgi(output(b"Status: 200\nContent-Type: text/plain\n\nok") + over()),
    "404 and a body": fastcgi(output(b"Status: 404 Not Found\r\n\r\nno") + over(), 2, "bad_status 404"),
    "a place and no status": fastcgi(output(b"Location: /login\r\n\r\n") + over(), 0),
    "304 without a body": fastcgi(output(b"Status: 304 Not Modified\r\nETag: x\r\n\r\n") + over(), 0),
    "HEAD with a body": fastcgi(output(SIZED) + over(), 0, typed=HEAD),
    "a close behind each reply": fastcgi(output(SIZED) + over(), then=close),
    "an end of its side behind each reply": fastcgi(output(SIZED) + over(), then=end),
    "connections of one request": fastcgi(output(SIZED) + over(), then=linger, typed=("--no-keepalive",)),
    "a reply ahead of the body": fastcgi(output(SIZED) + over(), typed=UPLOAD, ahead=True),
    "thirty thousand bytes of fields": fastcgi(
        output(b"X: y\r\n" * 1000 + b"Z: " + b"z" * 24_000 + b"\r\n\r\nok") + over()
    ),
    "a hundred thousand bytes": fastcgi(output(b"A: b\r\n\r\n" + bytes(100_000), 65_535) + over(), 100_000),
    "overloaded": fastcgi(over(protocol=OVERLOADED), 0, "stream_refused"),
    "no such role": fastcgi(over(protocol=NO_ROLE), 0, "stream_refused"),
    "no output": fastcgi(over(status=1), 0, "parse"),
    "errors and no output": fastcgi(record(STDERR, b"Traceback") + over(status=1), 0, "parse"),
    "half of a head": fastcgi(output(PAGE[:9]) + over(), 0, "parse"),
    "less than its length": fastcgi(output(SIZED[:-1]) + over(), 1, "short_body"),
    "a close within a record": fastcgi(output(SIZED)[:-1], 1, "short_body", then=close),
    "a close without a word": fastcgi(output(SIZED), 2, "short_body", then=close),
    **_behind_both("up to the close", PAGE),
    **_behind_both("a length, and it stays open", SIZED, then=linger),
    **_behind_both("a status line of HTTP", b"HTTP/1.1 200 OK\r\n" + SIZED),
    **_behind_both("a status line of HTTP/1.0", b"HTTP/1.0 200 OK\r\n" + PAGE),
    **_behind_both("chunks", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
    **_behind_both("lines that end in LF", b"Status: 200 OK\nContent-Length: 2\n\nok"),
    **_behind_both("byte by byte", b"Status: 201 Made\r\n" + SIZED, cut=1),
    **_behind_both("a place and no status", b"Location: /login\r\n\r\n", 0),
    **_behind_both("503", b"Status: 503 Busy\r\n" + SIZED, 2, "bad_status 503"),
    **_behind_both("HEAD with a body", SIZED, 0, typed=HEAD),
    **_behind_both("a reply ahead of the body", SIZED, typed=UPLOAD, ahead=True),
    **_behind_both("a close within the body", SIZED[:-1], 1, "short_body"),
    **_behind_both("no output", b"", 0, "eof"),
}  # fmt: skip
