"""Odd and legal servers of HTTP/2, one a function or a line; written from RFC 9113 and RFC 7541."""

import struct
import time
from dataclasses import dataclass

from http2_server import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
)

PRIORITY, PING, GOAWAY, CONTINUATION = 2, 6, 7, 9
PADDED, WITH_PRIORITY = 8, 0x20
TABLE_SIZE, MOST_STREAMS, WINDOW = 1, 3, 4
NO_ERROR, REFUSED, CALM = 0, 7, 11
ALL_STREAMS, FULL_WINDOW, LARGEST_FRAME = (1 << 31) - 1, 65535, 16384
OK = b"\x88"
UPLOAD = ("-m", "POST", "--body", "@upload")


def settings(*pairs):
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", *pair) for pair in pairs))


def number(value):
    return value.to_bytes(4)


def headers(stream, block=OK, flags=0):
    return frame(HEADERS, END_HEADERS | flags, stream, block)


def data(stream, payload=b"ok", flags=END_STREAM):
    return frame(DATA, flags, stream, payload)


def ok(stream, block=OK):
    return headers(stream, block) + data(stream)


def goaway(last, code=NO_ERROR, why=b""):
    return frame(GOAWAY, 0, 0, number(last) + number(code) + why)


def text(value):
    """A string of RFC 7541 5.2, as it is."""
    rest = len(value) - 127
    if rest < 0:
        return bytes([len(value)]) + value
    size = b"\x7f"
    while rest >= 128:
        size, rest = size + bytes([rest % 128 | 128]), rest // 128
    return size + bytes([rest]) + value


def field(name, value, first=b"\x00"):
    return first + text(name) + text(value)


HINTS = b"\x08\x03103" + field(b"link", b"</style.css>; rel=preload")


class Session:
    """One connection: a behaviour's ``answer(session, stream)`` is called once a request is whole."""

    def __init__(self, peer, behaviour):
        self.peer, self.behaviour = peer, behaviour
        self.open, self.waiting, self.served = {}, [], 0
        # What this side may send: in all, for a new stream, for each.
        self.room, self.first_room, self.rooms = FULL_WINDOW, FULL_WINDOW, {}
        self.bodies = {}
        # What the other side may send: for a new stream, for each; and how far a behaviour is.
        self.granted_first, self.granted = FULL_WINDOW, {}
        self.shrunk = self.settled = self.limited = False
        self.last = self.settings_known = 0

    def run(self):
        assert self.peer.exactly(len(PREFACE)) == PREFACE
        self.peer.send(self.behaviour.opening)
        while True:
            head = self.peer.exactly(9)
            payload = self.peer.exactly(int.from_bytes(head[:3]))
            self.take(head[3], head[4], int.from_bytes(head[5:]), payload)

    def take(self, kind, flags, stream, payload):
        match kind:
            case 4 if not flags & ACK:
                self.take_settings(payload)
            case 1:
                self.peer.count("requests")
                self.open[stream], self.rooms[stream] = 0, self.first_room
                self.behaviour.heads(self, stream, payload)
                self.behaviour.began(self, stream)
            case 0:
                self.open[stream] = self.open.get(stream, 0) + len(payload)
                self.behaviour.received(self, stream, len(payload))
            case 8:
                self.take_room(stream, int.from_bytes(payload))
            case _ if flags & ACK:
                self.settings_known += kind == SETTINGS
                self.behaviour.acknowledged(self, kind)
        if kind in (0, 1) and flags & END_STREAM:
            self.behaviour.answer(self, stream)

    def take_settings(self, payload):
        for start in range(0, len(payload), 6):
            name, value = struct.unpack_from(">HI", payload, start)
            if name == WINDOW:
                self.rooms = {stream: room + value - self.first_room for stream, room in self.rooms.items()}
                self.first_room = value
        if self.behaviour.acknowledges:
            self.peer.send(frame(SETTINGS, ACK))

    def take_room(self, stream, more):
        if stream:
            self.rooms[stream] = self.rooms.get(stream, 0) + more
        else:
            self.room += more
        self.flush()

    def reply(self, stream, sent, body=2, kind="ok"):
        self.open.pop(stream, None)
        self.served += 1
        self.peer.reply(sent, body, kind, self.behaviour.cut)

    def send_body(self, stream, frames):
        """Send frames of data as far as both windows allow, and the rest as they grow."""
        self.bodies[stream] = list(frames)
        self.flush()

    def flush(self):
        for stream, frames in self.bodies.items():
            while frames and (size := len(frames[0]) - 9) <= min(self.room, self.rooms[stream]):
                self.room, self.rooms[stream] = self.room - size, self.rooms[stream] - size
                self.peer.send(frames.pop(0))
            if frames:
                self.peer.count("waited for room")


def give_back(session, stream, size):
    """Let as much more be sent as has come."""
    if size:
        more = number(size)
        session.peer.send(frame(WINDOW_UPDATE, 0, 0, more) + frame(WINDOW_UPDATE, 0, stream, more))


def nothing(*_):
    """What most behaviours do."""


@dataclass(frozen=True)
class Odd:
    """A behaviour: what it does when a request is whole, begins, has data, and at an acknowledgement."""

    answer: object
    began: object = nothing
    received: object = give_back
    acknowledged: object = nothing
    opening: bytes = frame(SETTINGS)
    typed: tuple = ()
    heads: object = nothing
    acknowledges: bool = True
    cut: int = 0

    def handle(self, peer):
        Session(peer, self).run()


def replies(sent, body=2, kind="ok", **more):
    """A server that always answers the same."""
    return Odd(lambda session, stream: session.reply(stream, sent(stream), body, kind), **more)


def answered(session, stream):
    session.reply(stream, ok(stream))


def _fragments(stream, pieces, flags=0):
    first, *rest = pieces
    *rest, last = rest
    between = b"".join(frame(CONTINUATION, 0, stream, piece) for piece in rest)
    return frame(HEADERS, flags, stream, first) + between + frame(CONTINUATION, END_HEADERS, stream, last)


def _padded(stream):
    pad = bytes([255])
    head = frame(HEADERS, END_HEADERS | PADDED, stream, pad + OK + bytes(255))
    return head + frame(DATA, END_STREAM | PADDED, stream, pad + b"ok" + bytes(255))


def _padding_alone(stream):
    return headers(stream) + frame(DATA, PADDED, stream, bytes([99]) + bytes(99)) * 20 + data(stream)


def _with_priority(stream):
    weight = number(1 << 31) + b"\xff"
    return frame(HEADERS, END_HEADERS | WITH_PRIORITY, stream, weight + OK) + data(stream)


def _priorities(stream):
    each = b"".join(frame(PRIORITY, 0, one, number(0) + b"\x10") for one in (stream, stream + 2000, 2))
    return each + headers(stream) + each + data(stream) + each


def _unknown(stream):
    each = b"".join(
        frame(kind, 0xFF, one, b"whatever" * 9) for kind in (0x0A, 0x0C, 0x10, 0xFA) for one in (0, stream)
    )
    return each + headers(stream) + each + data(stream) + each


def _trailers(stream):
    return headers(stream) + data(stream, flags=0) + headers(stream, field(b"x-sum", b"1"), END_STREAM)


def _trailers_in_fragments(stream):
    block = field(b"x-sum", b"1")
    pieces = [block[:3], b"", block[3:]]
    return headers(stream) + data(stream, flags=0) + _fragments(stream, pieces, END_STREAM)


def _bit_by_bit(stream):
    return headers(stream) + data(stream, b"x", 0) * 500 + data(stream, b"")


def _large(session, stream):
    """A body beyond the windows, in frames of the largest size."""
    session.reply(stream, headers(stream), 80 * LARGEST_FRAME)
    frames = [data(stream, bytes(LARGEST_FRAME), 0)] * 79
    session.send_body(stream, [*frames, data(stream, bytes(LARGEST_FRAME))])


def _large_with_padding(session, stream):
    """A body whose padding takes most of the windows (RFC 9113 6.1: all of it counts)."""
    session.reply(stream, headers(stream), 4000)
    piece = frame(DATA, PADDED, stream, bytes([255]) + b"x" + bytes(255))
    session.send_body(stream, [*[piece] * 4000, data(stream, b"")])


def _indexed(session, stream):
    """The second reply has by number what the first one said (RFC 7541 6.2.1)."""
    block = OK + field(b"x-first", b"long enough to be worth it", b"\x40")
    session.reply(stream, ok(stream, OK + b"\xbe" if session.served else block))


def _evicting(stream):
    """Fields that push each other out of the table."""
    fields = [field(b"x-%d" % number, b"v" * 90, b"\x40") for number in range(60)]
    return ok(stream, OK + b"".join(fields) + b"\xbe\xbf")


def _holds(session, stream):
    """What has come is answered when a ping comes back."""
    session.waiting.append(stream)
    session.peer.send(headers(stream) + frame(PING, 0, 0, b"12345678"))


def _answers_all(session, kind):
    """In reverse order, and the bytes of all in turn."""
    if kind == PING:
        last_first, session.waiting = session.waiting[::-1], []
        session.peer.send(b"".join(data(stream, b"o", 0) for stream in last_first))
        for stream in last_first:
            session.reply(stream, data(stream, b"k"))


def _holds_for_settings(session, stream):
    session.waiting.append(stream)
    session.peer.send(settings((TABLE_SIZE, 0)) + settings((TABLE_SIZE, 4096), (MOST_STREAMS, 9)))


def _answers_one(session, kind):
    if kind == SETTINGS and session.waiting:
        answered(session, session.waiting.pop(0))


def _late_preface(session, stream):
    """Its settings come, before all else, once it has read a request."""
    if not session.served:
        session.peer.send(frame(SETTINGS))
    answered(session, stream)


def _counts_early(session, _):
    if session.limited:
        session.peer.count("sent against a limit")


def _opens(session, kind):
    """What has begun before it was known is answered; nothing more begins until a ping is back."""
    if kind == SETTINGS:
        session.limited = not session.settled
        time.sleep(0.02)
        session.peer.send(b"" if session.settled else frame(PING, 0, 0, bytes(8)))
    else:
        session.limited, session.settled = False, True
        session.peer.send(settings((MOST_STREAMS, 100)))


def _one_stream(session, stream):
    """After two replies, one stream at a time: what is open when that is acknowledged may end."""
    if session.served == 2:
        session.peer.send(settings((MOST_STREAMS, 1)))
    session.waiting.append(stream)
    session.peer.send(frame(PING, 0, 0, bytes(8)))


def _one_by_one(session, kind):
    if kind == SETTINGS and session.served >= 2:
        session.limited = True
    if kind == PING and session.waiting:
        answered(session, session.waiting.pop(0))


def _counts_too_many(session, _):
    if session.limited and len(session.open) > 1:
        session.peer.count("sent against a limit")


def _shrinks(session, stream, size):
    """The window of each stream becomes nothing in mid-upload, and grows again by and by."""
    session.granted[stream] -= size
    session.peer.send(frame(WINDOW_UPDATE, 0, 0, number(size)) if size else b"")
    if session.settled and session.granted[stream] < 0 and size:
        session.peer.count("sent against a limit")
    if session.settled and session.granted[stream] <= 0:
        _grows(session, stream)
    if not session.shrunk:
        session.shrunk = True
        session.peer.send(settings((WINDOW, 0)))


def _settles(session, kind):
    # The first are those of the opening, which a client may acknowledge behind its first requests.
    if kind == SETTINGS and session.settings_known == 2:
        session.settled, session.granted_first = True, 0
        for stream in session.open:
            session.granted[stream] -= FULL_WINDOW
            _grows(session, stream)


def _grows(session, stream):
    more = 9000 - session.granted[stream]
    session.granted[stream] += more
    session.peer.send(frame(WINDOW_UPDATE, 0, stream, number(more)))


def _begins(session, stream):
    session.granted[stream] = session.granted_first
    if session.settled:
        _grows(session, stream)


def _graceful(session, stream):
    """As Go and nginx: first it says that it will leave, then after a ping which one was the last."""
    answered(session, stream)
    session.last = stream
    if session.served == 3:
        session.peer.send(goaway(ALL_STREAMS) + frame(PING, 0, 0, b"leaving?"))


def _leaves(session, kind):
    if kind == PING:
        session.peer.send(goaway(max((session.last, *session.open))))
        _ends(session)


def _ends(session):
    session.peer.end()
    raise ConnectionError


def _limit_of_requests(session, stream):
    """As nginx after `keepalive_requests`: the last one is named before it is answered."""
    if session.served == 4:
        session.peer.send(goaway(stream))
        answered(session, stream)
        _ends(session)
    answered(session, stream)


def _one_of_four(session, stream):
    """It answers the first one, and has looked at none behind it."""
    session.peer.send(headers(stream) + goaway(stream, CALM, b"too many" * 100))
    session.reply(stream, data(stream))
    _ends(session)


def _wants_no_more(session, stream):
    """RFC 9113 8.1: a whole reply, and then a reset without an error instead of reading the rest."""
    session.reply(stream, ok(stream) + frame(RST_STREAM, 0, stream, number(NO_ERROR)))


def _refuses_each_third(session, stream):
    if session.peer.count("seen") % 3 == 0:
        session.open.pop(stream)
        session.peer.send(frame(RST_STREAM, 0, stream, number(REFUSED)))
    else:
        answered(session, stream)


def _lies_each_third(session, stream):
    """More data than the length says: an error of that stream alone (RFC 9113 8.1.1)."""
    if session.peer.count("seen") % 3 == 0:
        session.reply(stream, headers(stream, OK + field(b"content-length", b"1")) + data(stream), 1, "parse")
    else:
        answered(session, stream)


def _pinged(stream):
    """Between any two frames of a reply a ping, and each is answered."""
    ping = frame(PING, 0, 0, b"12345678")
    return (
        ping * 100 + headers(stream) + ping * 100 + data(stream, b"o", 0) + ping + data(stream, b"k") + ping
    )


def _resettled(stream):
    """Settings between any two frames, as far as they can be changed."""
    each = [settings((WINDOW, size), (MOST_STREAMS, most)) for size, most in ((0, 9), (FULL_WINDOW, 100))]
    return (
        b"".join(each) * 20 + headers(stream) + each[0] + data(stream, b"o", 0) + each[1] + data(stream, b"k")
    )


def _bit_of_room(stream):
    """Room for a byte, three hundred times: for the connection, and for a stream that needs none."""
    return (
        frame(WINDOW_UPDATE, 0, 0, number(1)) * 300
        + headers(stream)
        + (frame(WINDOW_UPDATE, 0, stream, number(1)) * 300 + data(stream))
    )


def _gives_room(session, stream):
    """No stream has room for a body before its head is there."""
    session.peer.send(frame(WINDOW_UPDATE, 0, stream, number(FULL_WINDOW)))


def _pings_first(session, stream):
    session.waiting.append(stream)
    session.peer.send(frame(PING, 0, 0, bytes(8)))


def _counts_second(session, _):
    if len(session.open) > 1 and session.settings_known:
        session.peer.count("sent against a limit")


def _checks_table(session, stream, block):
    """Whoever is left without a table must say so in its next head (RFC 7541 4.2)."""
    if session.settings_known and not session.settled:
        session.settled = True
        session.peer.count("sent against a limit", int(block[0] & 0xE0 != 0x20))


def _early(then):
    """The reply comes when a request begins; ``then``: what is sent behind it."""

    def began(session, stream):
        session.reply(stream, headers(stream, HINTS) + ok(stream))
        session.peer.send(then(stream))

    return Odd(nothing, began=began, typed=UPLOAD)


def _refused_early(session, stream):
    sent = headers(stream, field(b":status", b"413")) + data(stream, b"no")
    session.reply(stream, sent + frame(RST_STREAM, 0, stream, number(NO_ERROR)), 2, "bad_status 413")


def _cuts_each_third(session, stream):
    if session.peer.count("seen") % 3 == 0:
        sent = headers(stream) + data(stream, b"half", 0) + frame(RST_STREAM, 0, stream, number(8))
        session.reply(stream, sent, 4, "reset")
    else:
        answered(session, stream)


def _refuses_after_hints(session, stream):
    """What has early hints alone was not looked at, if the server says so (RFC 9113 8.7)."""
    if session.peer.count("seen") % 3 == 0:
        session.open.pop(stream)
        session.peer.send(headers(stream, HINTS) + frame(RST_STREAM, 0, stream, number(REFUSED)))
    else:
        answered(session, stream)


def _announces(session, stream):
    """It says that it leaves, answers what has come, and waits until the other side does."""
    answered(session, stream)
    if session.served == 3:
        session.peer.send(
            goaway(ALL_STREAMS) + goaway(ALL_STREAMS, why=b"soon") + frame(PING, 0, 0, bytes(8))
        )


def _is_known(session, kind):
    session.limited |= kind == PING


def _ends_without_a_word(session, stream):
    """As a server that is restarted: replies are whole, and the connection is over."""
    answered(session, stream)
    if session.served == 4:
        session.peer.end()
        raise ConnectionError


def _over(stream):
    return (
        ok(stream) + frame(WINDOW_UPDATE, 0, stream, number(1000)) + frame(RST_STREAM, 0, stream, number(0))
    )


LONG = b"".join(field(b"x-%d" % number, b"v" * 480) for number in range(60))
BLOCK = OK + field(b"x-one", b"1") + field(b"x-two", b"2")
COOKIES = b"".join(field(b"set-cookie", b"c%d=%d; Path=/" % (number, number)) for number in range(90))
STRANGE = settings(
    (0xF0F0, 1), (8, 1), (9, 1), (6, 100_000), (5, (1 << 24) - 1), (6, 1), (6, 1 << 31), (TABLE_SIZE, 1 << 31)
)
HEAD = ("-m", "HEAD")
SMALL = ("-m", "POST", "--body", "x" * 500)

BEHAVIOURS = {
    # In further ways.
    "pings between all frames": replies(_pinged),
    "settings between all frames": replies(_resettled),
    "room by the byte": replies(_bit_of_room),
    "no room for a body before its head": Odd(
        answered, began=_gives_room, opening=settings((WINDOW, 0)), typed=SMALL
    ),
    "no room for a body, in uploads": Odd(
        answered, began=_gives_room, opening=settings((WINDOW, 0)), typed=UPLOAD
    ),
    "one stream at a time": Odd(
        _pings_first, began=_counts_second, acknowledged=_one_by_one, opening=settings((MOST_STREAMS, 1))
    ),
    "no table": Odd(answered, heads=_checks_table, opening=settings((TABLE_SIZE, 0))),
    "the reply comes before the upload, which is read": _early(lambda _: b""),
    "the reply comes before the upload, which is not wanted": _early(
        lambda n: frame(RST_STREAM, 0, n, number(NO_ERROR))
    ),
    "a refusal before the upload": Odd(nothing, began=_refused_early, typed=UPLOAD),
    "each third is cut": Odd(_cuts_each_third),
    "each third is refused after hints": Odd(_refuses_after_hints),
    "announces that it leaves, and stays": Odd(_announces, began=_counts_early, acknowledged=_is_known),
    "ends without a word": Odd(_ends_without_a_word),
    "421": replies(lambda n: ok(n, field(b":status", b"421")), kind="bad_status 421"),
    "a length of nothing": replies(lambda n: headers(n, OK + field(b"content-length", b"0"), END_STREAM), 0),
    "a length of nothing and an empty frame": replies(
        lambda n: headers(n, OK + field(b"content-length", b"0")) + data(n, b""), 0
    ),
    "a length, padding, and trailers": replies(
        lambda n: (
            headers(n, OK + field(b"content-length", b"2"))
            + frame(DATA, PADDED, n, bytes([9]) + b"ok" + bytes(9))
            + headers(n, field(b"x-sum", b"1"), END_STREAM)
        )
    ),
    "204 after hints, with trailers": replies(
        lambda n: headers(n, HINTS) + headers(n, b"\x89") + headers(n, field(b"x", b"y"), END_STREAM), 0
    ),
    "HEAD after hints, with trailers": replies(
        lambda n: (
            headers(n, HINTS)
            + headers(n, OK + field(b"content-length", b"9"))
            + headers(n, field(b"x", b"y"), END_STREAM)
        ),
        0,
        typed=HEAD,
    ),
    "all interim statuses": replies(
        lambda n: (
            b"".join(headers(n, field(b":status", b"%d" % status)) for status in (100, 102, 103, 199)) + ok(n)
        )
    ),
    "sixty thousand bytes of fields": replies(
        lambda n: _fragments(n, [OK, LONG[:16000], LONG[16000:], LONG[:16000], LONG[16000:]]) + data(n)
    ),
    "hints in fragments": replies(lambda n: _fragments(n, [HINTS[:5], b"", HINTS[5:]]) + ok(n)),
    "frames that are as long as may be": replies(
        lambda n: headers(n) + data(n, bytes(LARGEST_FRAME)), LARGEST_FRAME
    ),
    "an empty value, and one of all signs": replies(
        lambda n: ok(n, OK + field(b"x-empty", b"") + field(b"x-all", bytes(range(0x21, 0x7F)) + b"\t\xff"))
    ),
    "a name of all signs": replies(lambda n: ok(n, OK + field(b"!#$%&'*+-.^_`|~09az", b"x"))),
    # Heads and frames (RFC 9113 4, 6.1 to 6.3, 6.10, 8.1).
    "early hints ten times": replies(lambda n: headers(n, HINTS) * 10 + ok(n)),
    "interim replies before no content": replies(
        lambda n: headers(n, HINTS) + headers(n, b"\x89", END_STREAM), 0
    ),
    "padding": replies(_padded),
    "data of padding alone": replies(_padding_alone),
    "a priority in each head": replies(_with_priority),
    "priorities of streams that are over and of others": replies(_priorities),
    "a head in fragments of one byte": replies(
        lambda n: _fragments(n, [BLOCK[i : i + 1] for i in range(len(BLOCK))]) + data(n)
    ),
    "a head in fragments, some empty": replies(lambda n: _fragments(n, [b"", b"", BLOCK, b""]) + data(n)),
    "a head of thirty thousand bytes": replies(
        lambda n: _fragments(n, [OK + LONG[:16000], LONG[16000:]]) + data(n)
    ),
    "ninety cookies": replies(lambda n: ok(n, OK + COOKIES)),
    "frames of unknown kinds": replies(_unknown),
    "fifty empty frames of data": replies(lambda n: headers(n) + data(n, b"", 0) * 50 + data(n)),
    "an end that is an empty frame": replies(lambda n: headers(n) + data(n, flags=0) + data(n, b"")),
    "data of one byte a frame": replies(_bit_by_bit, 500),
    "all byte by byte": replies(_trailers, cut=1),
    "trailers": replies(_trailers),
    "trailers in fragments": replies(_trailers_in_fragments),
    "trailers without a body": replies(
        lambda n: headers(n) + headers(n, field(b"grpc-status", b"0"), END_STREAM), 0
    ),
    "a head that ends all": replies(lambda n: headers(n, flags=END_STREAM), 0),
    "204 and an empty frame": replies(lambda n: headers(n, b"\x89") + data(n, b""), 0),
    "304 with the length of its page": replies(
        lambda n: headers(n, b"\x8b" + field(b"content-length", b"90000"), END_STREAM), 0
    ),
    "HEAD with a length": replies(
        lambda n: headers(n, OK + field(b"content-length", b"90000"), END_STREAM), 0, typed=HEAD
    ),
    "404 with trailers": replies(
        lambda n: headers(n, b"\x8d") + data(n, b"no", 0) + headers(n, field(b"a", b"b"), END_STREAM),
        kind="bad_status 404",
    ),
    # Tables of fields (RFC 7541 4, 6).
    "a table that shrinks and grows in a head": replies(lambda n: ok(n, b"\x20\x3f\xe1\x1f" + OK)),
    "fields by number": Odd(_indexed),
    "fields that push others out": replies(_evicting),
    "fields in Huffman's code": replies(lambda n: ok(n, OK + b"\x58\x85\xae\xc3\x77\x1a\x4b")),
    "fields that are never to be indexed": replies(lambda n: ok(n, OK + field(b"secret", b"x", b"\x10"))),
    # Settings, pings, windows (RFC 9113 5.2, 6.5, 6.7, 6.9).
    "settings of all kinds, some twice": replies(ok, opening=STRANGE),
    "settings that come late": Odd(_late_preface, opening=b"", acknowledges=False),
    "settings that it does not acknowledge": replies(ok, acknowledges=False),
    "replies once its ping is answered, the last first": Odd(_holds, acknowledged=_answers_all),
    "replies once its settings are acknowledged": Odd(_holds_for_settings, acknowledged=_answers_one),
    "no stream at first": Odd(
        answered,
        began=_counts_early,
        acknowledged=_opens,
        opening=settings((MOST_STREAMS, 0)),
    ),
    "one stream at a time from the third on": Odd(
        _one_stream, began=_counts_too_many, acknowledged=_one_by_one
    ),
    "bodies beyond the windows": Odd(_large),
    "padding beyond the windows": Odd(_large_with_padding),
    "a window that shrinks below nothing": Odd(
        answered, began=_begins, received=_shrinks, acknowledged=_settles, typed=UPLOAD
    ),
    "windows of seven bytes": Odd(
        answered, opening=settings((WINDOW, 7)), typed=("-m", "POST", "--body", "x" * 500)
    ),
    "the largest windows": replies(
        ok,
        opening=settings((WINDOW, ALL_STREAMS))
        + frame(WINDOW_UPDATE, 0, 0, number(ALL_STREAMS - FULL_WINDOW)),
        typed=("-m", "POST", "--body", "@upload"),
        received=nothing,
    ),
    # Ends (RFC 9113 5.1, 5.4, 6.4, 6.8, 8.1).
    "frames for a stream that is over": replies(_over),
    "a whole reply and a reset without an error": Odd(
        nothing, began=_wants_no_more, received=nothing, typed=UPLOAD
    ),
    "each third is refused": Odd(_refuses_each_third),
    "each third has more than its length": Odd(_lies_each_third),
    "leaves in two steps": Odd(_graceful, acknowledged=_leaves),
    "leaves after five requests": Odd(_limit_of_requests),
    "answers the first of four and leaves": Odd(_one_of_four),
}
