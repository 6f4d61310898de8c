"""Odd and legal servers of HTTP/1.1, one a function or a line; written from RFC 9110 and RFC 9112."""

import time
from dataclasses import dataclass
from itertools import count

HEAD, POST = ("-m", "HEAD"), ("-m", "POST", "--body", "x" * 100)
UPLOAD = ("-m", "POST", "--body", "@upload")
CHUNKS = (*UPLOAD, "-H", "Transfer-Encoding: chunked")
SELDOM = ("--rate", "20")


@dataclass(frozen=True)
class Odd:
    """A behaviour: what it does with a connection, and how the load is typed.

    ``connections``: as many at most for the whole load of three; null: any number.
    """

    handle: object
    typed: tuple = ()
    connections: int | None = None


def head(*fields, status="200 OK", version="HTTP/1.1"):
    return "\r\n".join((f"{version} {status}", *fields, "", "")).encode("latin-1")


def full(*fields, status="200 OK", version="HTTP/1.1", body=b"ok"):
    return head(f"Content-Length: {len(body)}", *fields, status=status, version=version) + body


def stay(peer):
    """Go on to the next request."""


def close(peer):
    peer.connection.close()
    raise ConnectionError


def end(peer):
    peer.end()
    raise ConnectionError


def reset(peer):
    peer.reset()
    raise ConnectionError


def linger(peer):
    """Keep the connection open and see whether the other side sends on, which it must not."""
    if peer.connection.recv(1):
        peer.count("sent against a limit")
    raise ConnectionError


def replies(text, body=2, kind="ok", then=stay, cut=0, typed=(), connections=None):
    """A server that always sends the same, with a body of so many bytes, of a class."""

    def handle(peer):
        while True:
            peer.ask()
            peer.read_body()
            peer.reply(text, body, kind, cut)
            then(peer)

    return Odd(handle, typed, connections if then is not stay else connections or 3)


def in_turn(*texts):
    """A server whose replies on a connection are of one form after the other: text, bytes of body, class."""

    def handle(peer):
        while True:
            for text, body, kind in texts:
                peer.ask()
                peer.reply(text, body, kind)

    return Odd(handle, connections=3)


def _coded(*pieces, fields=(), trailers=b""):
    return head("Transfer-Encoding: chunked", *fields) + b"".join(pieces) + b"0\r\n" + trailers + b"\r\n"


def _hints(count):
    links = [f"Link: </style-{number}.css>; rel=preload; as=style" for number in range(count)]
    return head(*links, status="103 Early Hints")


def _413_unread(peer):
    """As nginx: the reply and the end of its side come at once, and then it reads what still comes."""
    peer.ask()
    peer.reply(full("Connection: close", status="413 Content Too Large", body=b"no"), 2, "bad_status 413")
    end(peer)


def _answers_first(peer):
    """The reply is sent at the head, the body is read to its end, and the connection goes on."""
    while True:
        peer.ask()
        peer.reply(full(), 2)
        peer.read_body()


def _answers_half_way(peer):
    while True:
        peer.ask()
        rest, peer.body_left = peer.body_left // 2, peer.body_left // 2
        peer.read_body()
        peer.body_left = rest
        peer.reply(_coded(b"2\r\nok\r\n"), 2)
        peer.read_body()


def _closes_after_three(peer):
    """As a server with a limit of requests that it does not say."""
    for _ in range(3):
        peer.ask()
        peer.reply(full("Keep-Alive: timeout=5"), 2)


def _says_the_last(peer):
    """As Apache: `Keep-Alive: max` counts down, and the last reply says that it closes."""
    for left in (2, 1):
        peer.ask()
        peer.reply(full(f"Keep-Alive: timeout=5, max={left}", "Connection: Keep-Alive"), 2)
    peer.ask()
    peer.reply(full("Connection: close"), 2)


def _two_for_one(peer):
    """Two replies for one request: the second one answers nothing."""
    peer.ask()
    peer.reply(full() + full(status="500 X"), 2)
    end(peer)


def _interim_within_the_upload(peer):
    """100 though nobody waits for it, 102 while it reads, 103 when it knows what comes."""
    while True:
        peer.ask()
        peer.send(head(status="100 Continue"))
        rest, peer.body_left = peer.body_left // 2, peer.body_left // 2
        peer.read_body()
        peer.send(head(status="102 Processing"))
        peer.body_left = rest
        peer.read_body()
        peer.reply(_hints(1) + full(), 2)


def _reads_chunks(peer, ahead=False):
    while True:
        peer.ask()
        if ahead:
            peer.reply(full(), 2)
        while size := int(peer.line(), 16):
            peer.body_left = size + 2
            peer.read_body()
        assert peer.line() == b""
        if not ahead:
            peer.reply(full(), 2)


def _answers_chunks_first(peer):
    _reads_chunks(peer, ahead=True)


def _refuses_after_a_part(peer):
    """It has read enough to know that it is too much, says so, and reads on to the end."""
    peer.ask()
    rest, peer.body_left = peer.body_left - 10_000, 10_000
    peer.read_body()
    peer.reply(full("Connection: close", status="413 Too Large", body=b"no"), 2, "bad_status 413")
    peer.body_left = rest
    end(peer)


def _takes_nothing_more(peer):
    """The first byte is enough: it is for another protocol, or there are too many connections."""
    peer.take(1)
    peer.count("requests")
    peer.reply(
        full("Connection: close", "Retry-After: 1", status="503 Busy", body=b"no"), 2, "bad_status 503"
    )
    end(peer)


def _leaves_the_idle(peer, word=b""):
    """It closes what has been idle for ten milliseconds; ``word``: with this word, as HAProxy does."""
    while True:
        peer.ask()
        peer.reply(full(), 2)
        if not peer.waits(0.01):
            peer.send(word)
            close(peer)


def _leaves_the_idle_with_408(peer):
    _leaves_the_idle(peer, full("Connection: close", status="408 Request Timeout", body=b"late"))


def _sizes_of_buffers(peer):
    """Bodies that end with a buffer of the other side, and a byte before and behind."""
    sizes = [size + more for size in (16_384, 65_536, 131_072) for more in (-1, 0, 1)]
    for number in count():
        size = sizes[number % len(sizes)]
        whole = full(body=bytes(size))
        # So many with the head, too.
        fits = full(body=bytes(size - (len(whole) - size)))
        for text in (whole, fits):
            peer.ask()
            peer.reply(text, len(text.partition(b"\r\n\r\n")[2]))


def _pauses(peer):
    """Each part comes alone and late: the status line, the fields, the empty line, the body."""
    while True:
        peer.ask()
        peer.counted("ok", 2)
        for piece in (b"HTTP/1.1 200 OK\r", b"\nContent-Length", b": 2\r\n\r", b"\n", b"o", b"k"):
            peer.send(piece)
            time.sleep(0.001)


MANY = [f"X-Field-{number}: {'v' * 400}" for number in range(60)]
FORMS = (
    (full(), 2, "ok"),
    (_coded(b"2\r\nok\r\n", b"3\r\nyes\r\n"), 5, "ok"),
    (head(status="204 No Content"), 0, "ok"),
    (_hints(2) + full(body=b""), 0, "ok"),
    (head('ETag: "a"', "Content-Length: 77", status="304 Not Modified"), 0, "ok"),
    (full(status="503 Busy", body=b"later"), 5, "bad_status 503"),
    (_coded(), 0, "ok"),
)

BEHAVIOURS = {
    # Interim replies (RFC 9110 15.2).
    "early hints with sixty links": replies(_hints(60) + full()),
    "three interim replies in turn": replies(
        head(status="100 Continue") + head(status="102 Processing") + _hints(1) + full()
    ),
    "an interim reply of no known status": replies(head("X: y", status="199 Still There") + full()),
    "an interim reply without a reason": replies(b"HTTP/1.1 100 \r\n\r\n" + full()),
    "an interim reply that names a length": replies(head("Content-Length: 9", status="103 X") + full()),
    "an interim reply that names a close": replies(head("Connection: close", status="103 X") + full()),
    "interim replies before no content": replies(_hints(3) + head(status="204 No Content"), 0),
    "interim replies byte by byte": replies(_hints(1) + full(), cut=1),
    # Replies that have no body whatever their fields say (RFC 9112 6.3, rule 1).
    "204 that names a length": replies(head("Content-Length: 5", status="204 No Content"), 0),
    "204 that names chunks": replies(head("Transfer-Encoding: chunked", status="204 No Content"), 0),
    "304 with the length of its page": replies(head("Content-Length: 90000", status="304 Not Modified"), 0),
    "304 that names chunks": replies(head("Transfer-Encoding: chunked", status="304 Not Modified"), 0),
    "205 with a length of nothing": replies(full(status="205 Reset Content", body=b""), 0),
    "HEAD with a length": replies(head("Content-Length: 90000"), 0, typed=HEAD),
    "HEAD with chunks": replies(head("Transfer-Encoding: chunked"), 0, typed=HEAD),
    "HEAD with neither": replies(head("Server: x"), 0, typed=HEAD),
    "HEAD of what is not there": replies(
        head("Content-Length: 9", status="404 Not Found"), 0, "bad_status 404", typed=HEAD
    ),
    "HEAD after early hints": replies(_hints(2) + head("Content-Length: 9"), 0, typed=HEAD),
    # Lines and fields (RFC 9112 2.2, 4, 5; RFC 9110 5.5).
    "a field over two lines": replies(full("X-Folded: one,\r\n\t two")),
    "a length on a line of its own": replies(b"HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nok"),
    "lines that end in LF and in CRLF": replies(b"HTTP/1.1 200 OK\nA: b\r\nContent-Length: 2\n\r\nok"),
    "a reason in Latin-1": replies(full(status="200 D\xe9j\xe0 vu")),
    "a field in UTF-8": replies(full("X-City: K\xc3\xb6ln")),
    "fields without a value": replies(full("X-Empty:", "X-Blank:  \t ")),
    "a name of every sign": replies(full("!#$%&'*+-.^_`|~09: x")),
    "blanks around a length": replies(b"HTTP/1.1 200 OK\r\nContent-Length: \t 2 \t\r\n\r\nok"),
    "no blank before a length": replies(b"HTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\nok"),
    "a length with zeros ahead": replies(
        b"HTTP/1.1 200 OK\r\nContent-Length: 00000000000000000002\r\n\r\nok"
    ),
    "a length twice in one field": replies(b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok"),
    "sixty long fields": replies(full(*MANY)),
    "one field of thirty thousand bytes": replies(full(f"Content-Security-Policy: {'x' * 30000}")),
    "thirty thousand bytes of fields in pieces": replies(full(*MANY), cut=1448),
    "a later minor version": replies(full(version="HTTP/1.2")),
    # Statuses (RFC 9110 15).
    "a success of no known status": replies(full(status="299 Fine")),
    "a part of a page": replies(full("Content-Range: bytes 0-1/9", status="206 Partial Content")),
    "a status of its own, 999": replies(full(status="999 Request Denied"), 2, "bad_status 999"),
    # Bodies in chunks (RFC 9112 7.1).
    "extensions of chunks": replies(_coded(b'2;a=b;c="d;\\"e"\r\nok\r\n')),
    "blanks around extensions": replies(_coded(b"2 ; a = b\r\nok\r\n")),
    "an extension of a thousand bytes": replies(_coded(b"2;a=" + b"b" * 1000 + b"\r\nok\r\n")),
    "trailers that look like framing": replies(
        _coded(
            b"2\r\nok\r\n", trailers=b"Content-Length: 99\r\nTransfer-Encoding: gzip\r\nConnection: close\r\n"
        )
    ),
    "thirty trailers": replies(_coded(b"2\r\nok\r\n", trailers=b"X-Trailer: value\r\n" * 30)),
    "a trailer over two lines": replies(_coded(b"2\r\nok\r\n", trailers=b"X: one\r\n two\r\n")),
    "extensions and trailers byte by byte": replies(
        _coded(b"0A;x=y\r\n0123456789\r\n", b"1\r\n\n\r\n", trailers=b"X: y\r\n"), 11, cut=1
    ),
    "two thousand chunks of one byte": replies(_coded(*[b"1\r\nx\r\n"] * 2000), 2000),
    "sizes of chunks with zeros ahead": replies(
        _coded(b"000000000000000002\r\nok\r\n")[:-5] + b"000\r\n\r\n"
    ),
    "one chunk of a quarter of a million bytes": replies(
        _coded(b"3d090\r\n" + b"x" * 250_000 + b"\r\n"), 250_000
    ),
    "CHUNKED": replies(b"HTTP/1.1 200 OK\r\nTRANSFER-ENCODING: CHUNKED\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
    "chunks that look like heads": replies(_coded(b"13\r\nHTTP/1.1 500 No\r\n\r\n\r\n"), 19),
    "a wrong length before chunks": replies(
        head("Content-Length: 5000", "Transfer-Encoding: chunked") + b"2\r\nok\r\n0\r\n\r\n",
        then=end,
    ),
    # Where a connection ends (RFC 9112 9).
    "close in a second field": replies(full("Connection: x-y", "Connection: close"), then=linger),
    "close in a list with blanks and empty elements": replies(
        full("Connection: , x ,\tClose ,"), then=linger
    ),
    "close before the length": replies(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", then=linger
    ),
    "words that hold the word close": replies(full("Connection: closed, not-close, keep-alive")),
    "an upgrade that is offered": replies(full("Upgrade: h2,h2c", "Connection: Upgrade, Keep-Alive")),
    "HTTP/1.0 that keeps": replies(full("Connection: keep-alive", version="HTTP/1.0")),
    "HTTP/1.0 that keeps in other letters": replies(
        full("connection: Keep-Alive", "Keep-Alive: timeout=5, max=99", version="HTTP/1.0")
    ),
    "HTTP/1.0 that says nothing and stays": replies(full(version="HTTP/1.0"), then=linger),
    "HTTP/1.0 up to its close": replies(head(version="HTTP/1.0") + b"ok", then=close),
    "a body up to the end of its side": replies(head() + b"ok", then=end),
    "a body up to a close, in pieces": replies(head() + b"x" * 3000, 3000, then=close, cut=700),
    "no body up to a close": replies(head(), 0, then=close),
    "a close behind each length": replies(full(), then=close),
    "an end of its side behind each length": replies(full(), then=end),
    "a reset behind each length": replies(full(), then=reset),
    "a reset behind the last chunk": replies(_coded(b"2\r\nok\r\n"), then=reset),
    "a close behind a POST": replies(full("Connection: close"), then=close, typed=POST),
    "a limit of requests that is not said": Odd(_closes_after_three),
    "a limit of requests that is counted down": Odd(_says_the_last),
    "an empty line behind each body": replies(full() + b"\r\n", then=end),
    "two replies for one request": Odd(_two_for_one),
    # As above, in further ways.
    "interim replies within an upload": Odd(_interim_within_the_upload, UPLOAD, 3),
    "an interim reply and the reply, each field alone": replies(_hints(3) + full("A: b"), cut=17),
    "sixty thousand bytes of interim replies": replies(
        head(f"Link: {'x' * 9900}", status="103 X") * 6 + full()
    ),
    "HEAD in a coding that nobody asked for": replies(head("Transfer-Encoding: gzip"), 0, typed=HEAD),
    "HEAD without a body up to a close": replies(head("Connection: close"), 0, then=close, typed=HEAD),
    "304 in a coding that nobody asked for": replies(
        head("Transfer-Encoding: gzip", status="304 Not Modified"), 0
    ),
    "204 that closes": replies(head("Connection: close", status="204 No Content"), 0, then=linger),
    "no reason": replies(full(status="200 ")),
    "a reason of a thousand bytes": replies(full(status=f"200 {'very ' * 200}fine")),
    "a thousand fields": replies(full(*[f"X-{number}: y" for number in range(1000)])),
    "sixty thousand bytes of fields": replies(full(*MANY, *MANY[:-1], *MANY[:20])),
    "two hundred cookies": replies(full(*[f"Set-Cookie: c{number}=v; Path=/" for number in range(200)])),
    "tabs within and around values": replies(full("X-Tabs:\ta\tb\t")),
    "a field that is folded ten times": replies(full("X-Folded: one" + "\r\n  more" * 10)),
    "a folded field byte by byte": replies(full("X-Folded: one,\r\n\t two"), cut=1),
    "an upgrade that is required": replies(
        full("Upgrade: TLS/1.3", "Connection: Upgrade", status="426 Upgrade Required"), 2, "bad_status 426"
    ),
    "a redirect without a place": replies(full(status="300 Multiple Choices")),
    "parts of parts": replies(
        full(
            "Content-Type: multipart/byteranges; boundary=x",
            status="206 Partial Content",
            body=b"--x--\r\n\r\n",
        ),
        9,
    ),
    "an extension behind the last size": replies(_coded(b"2\r\nok\r\n")[:-5] + b"0;a=b\r\n\r\n"),
    "sizes of chunks in both cases": replies(_coded(b"a\r\n0123456789\r\n", b"A\r\n0123456789\r\n"), 20),
    "the last chunk comes alone": replies(_coded(b"2\r\nok\r\n"), cut=len(_coded(b"2\r\nok\r\n")) - 5),
    "chunks and a close that is said": replies(
        _coded(b"2\r\nok\r\n", fields=("Connection: close",)), then=linger
    ),
    "sixty thousand bytes of trailers": replies(
        _coded(b"2\r\nok\r\n", trailers=b"X: " + b"y" * 60_000 + b"\r\n")
    ),
    "chunks of a quarter of a million bytes in pieces": replies(
        _coded(b"3d090\r\n" + b"x" * 250_000 + b"\r\n"), 250_000, cut=5000
    ),
    "bodies of the sizes of buffers": Odd(_sizes_of_buffers, connections=3),
    "keep-alive for no time": replies(full("Keep-Alive: timeout=0, max=0")),
    "an old version that closes": replies(full("Connection: close", version="HTTP/1.0"), then=linger),
    "an upload in chunks": Odd(_reads_chunks, CHUNKS, 3),
    "an answer ahead of an upload in chunks": Odd(_answers_chunks_first, CHUNKS, 3),
    "an upload that is refused after a part": Odd(_refuses_after_a_part, UPLOAD),
    "a refusal at the first byte": Odd(_takes_nothing_more),
    "idle connections are closed": Odd(_leaves_the_idle, SELDOM),
    "idle connections are closed with a word": Odd(_leaves_the_idle_with_408, SELDOM),
    "a reset where a close ends the body": replies(head() + b"ok", 2, "reset", then=reset),
    "a reset within a body": replies(full(body=b"0123456789")[:-3], 7, "reset", then=reset),
    "an end of its side within a body": replies(full(body=b"0123456789")[:-3], 7, "short_body", then=end),
    # Replies that do not come whole, or in a coding that nobody asked for.
    "a coding that nobody asked for": replies(
        head("Transfer-Encoding: gzip", "Connection: close") + b"ok", 0, "parse", then=close
    ),
    "a close within the last chunk": replies(_coded(b"2\r\nok\r\n")[:-2], 2, "short_body", then=close),
    "a close within a chunk": replies(_coded(b"9\r\nok\r\n")[:-7], 2, "short_body", then=close),
    "a close within the empty line": replies(full()[:-3], 0, "eof", then=close),
    # Uploads (RFC 9112 9.5, RFC 9110 15.5.14).
    "413 that does not read": Odd(_413_unread, UPLOAD),
    "an answer ahead of the body": Odd(_answers_first, UPLOAD, 3),
    "an answer at half of the body": Odd(_answers_half_way, UPLOAD, 3),
    # All in one.
    "parts that come alone and late": Odd(_pauses, connections=3),
    "another form each time": in_turn(*FORMS),
}
