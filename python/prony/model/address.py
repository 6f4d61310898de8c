"""Where a subject listens, and what is spoken there. Must not know what listens.

>>> Address("127.0.0.1", 8080).url
'http://127.0.0.1:8080'
"""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Address", "AddressKind", "HttpVersion", "Tls", "TlsKey", "TlsVersion", "Wire"]


class Wire(StrEnum):
    """What is spoken on the socket."""

    HTTP = "http"
    FASTCGI = "fastcgi"
    UWSGI = "uwsgi"
    SCGI = "scgi"
    HTTP2 = "http2"


class HttpVersion(StrEnum):
    """A version of HTTP/1."""

    HTTP_1_0 = "1.0"
    HTTP_1_1 = "1.1"


class AddressKind(StrEnum):
    """The socket family."""

    TCP4 = "tcp4"
    TCP6 = "tcp6"
    UNIX = "unix"


class TlsVersion(StrEnum):
    """A version of TLS."""

    TLS_1_2 = "1.2"
    TLS_1_3 = "1.3"


class TlsKey(StrEnum):
    """The key of a server's certificate: ECDSA on the curve P-256, or RSA of 2048 bits."""

    ECDSA = "ecdsa"
    RSA_2048 = "rsa2048"


@dataclass(frozen=True, slots=True)
class Tls:
    """What is asked of a server with TLS. Files are PEM.

    ``verify``: whether its certificate must be of an authority in ``ca_file`` (null: of one that this machine
    knows), valid, and for ``server_name`` (null: for the host). ``resumption``: whether a connection may take
    up the session of an earlier one.
    """

    verify: bool = True
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None
    least_version: TlsVersion = TlsVersion.TLS_1_2
    resumption: bool = True


@dataclass(frozen=True, slots=True)
class Address:
    """Where a subject listens. ``host`` is a literal; for ``unix`` the socket's path, and ``port`` is 0.

    ``tls``: null without it. ``version``: of HTTP/1. ``pipeline``: of HTTP/1.1, how many requests a
    connection has at once; ``any_method``: it has also what is not safe to repeat.
    """

    host: str
    port: int
    kind: AddressKind = AddressKind.TCP4
    tls: Tls | None = None
    wire: Wire = Wire.HTTP
    version: HttpVersion = HttpVersion.HTTP_1_1
    pipeline: int = 1
    any_method: bool = False

    @property
    def url(self) -> str:
        """The address as a URL, for people and for external tools."""
        host = f"[{self.host}]" if self.kind is AddressKind.TCP6 else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"
