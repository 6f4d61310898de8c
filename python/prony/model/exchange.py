"""One request, and the replies that an app must give.

>>> Check(Request(path="/hello"), status=200).request.method
'GET'
>>> fault_of(Request(path="@other.host/"))
('path', 'a path that starts with `/`, without blanks')
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from prony.model.json_codec import OPTIONAL

_PATH = re.compile(r"/[^\x00-\x20\x7f]*")
# RFC 9110, section 5.6.2: a token.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_METHOD = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``headers`` are sent unchanged; ``keep_alive`` false: a new connection for each
    request.
    """

    method: str = "GET"
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    keep_alive: bool = True


@dataclass(frozen=True, slots=True)
class Check:
    """One request and the reply that an app must give. ``body`` null: any.

    ``statuses``: ranges, both ends included; none and no ``status``: 200 to 399. A null value of a header:
    any; parameters may follow a value.
    """

    request: Request = Request()
    status: int | None = None
    body: bytes | None = None
    statuses: tuple[tuple[int, int], ...] = field(default=(), metadata=OPTIONAL)
    headers: tuple[tuple[str, str | None], ...] = field(default=(), metadata=OPTIONAL)
    body_contains: tuple[bytes, ...] = field(default=(), metadata=OPTIONAL)
    body_sha256: str | None = field(default=None, metadata=OPTIONAL)

    @property
    def says_anything(self) -> bool:
        """Whether it expects more of the reply than a status of 200 to 399."""
        return self != Check(self.request)


@dataclass(frozen=True, slots=True)
class Contract:
    """The replies that an app must give. The request of the first check is also the one that is measured.

    Without checks, the replies of all subjects are compared before the load.
    """

    checks: tuple[Check, ...] = ()


def as_sent(path: str) -> str:
    """Return a path as it is sent: without its fragment, and what is not ASCII as percent-encoded UTF-8.

    >>> as_sent("/caf\u00e9?q=%20#top")
    '/caf%C3%A9?q=%20'
    """
    kept = path.partition("#")[0]
    return _NOT_ASCII.sub(lambda found: quote(found[0], errors="surrogateescape"), kept)


def is_path(text: str) -> bool:
    """Return whether a text can follow an address, and cannot change where the request goes."""
    return _PATH.fullmatch(text) is not None


def status_ranges(text: str) -> tuple[tuple[int, int], ...] | None:
    """Return the ranges of statuses in a list such as ``200,204,3xx``, both ends included; None: it is none.

    >>> status_ranges("200,3xx"), status_ranges("99")
    (((200, 200), (300, 399)), None)
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"[1-9][0-9]{2}|[1-9]xx", part) for part in parts):
        return None
    return tuple((int(part.replace("x", "0")), int(part.replace("x", "9"))) for part in parts)


def status_alone(ranges: Sequence[tuple[int, int]]) -> int | None:
    """Return the status that ranges are, which every generator can check; None: they are more, or none.

    >>> status_alone(((200, 200),)), status_alone(((300, 399),))
    (200, None)
    """
    return ranges[0][0] if len(ranges) == 1 and ranges[0][0] == ranges[0][1] else None


def is_method(text: str) -> bool:
    """Return whether a text is one word."""
    return _METHOD.fullmatch(text) is not None


def is_header_name(text: str) -> bool:
    """Return whether a text is the name of a header."""
    return _TOKEN.fullmatch(text) is not None


def is_header_value(text: str) -> bool:
    """Return whether a text stays on the line of its header."""
    return not any(mark in text for mark in "\r\n\0")


def fault_of(request: Request) -> tuple[str, str] | None:
    """Return the field of a request that nobody could type, and what was expected there; None: none.

    Generators get requests as arguments, in files and in scripts: a path without `/` would change the host,
    and a line break would begin another request.
    """
    if not is_path(request.path):
        return "path", "a path that starts with `/`, without blanks"
    if not is_method(request.method):
        return "method", "a method such as GET"
    if not all(is_header_name(name) and is_header_value(value) for name, value in request.headers):
        return "headers", "headers of one line each"
    return None
