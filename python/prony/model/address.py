"""Where a subject listens, and what is spoken there.

>>> Address("127.0.0.1", 8080).url
'http://127.0.0.1:8080'
"""

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from prony.model.json_codec import OPTIONAL


class Wire(StrEnum):
    """What is spoken on the socket."""

    HTTP = "http"
    FASTCGI = "fastcgi"
    UWSGI = "uwsgi"
    SCGI = "scgi"
    HTTP2 = "http2"


KEEPING = (Wire.HTTP, Wire.FASTCGI)
"""Those whose connections are kept, one request after the other, so that a limit can end them."""


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


class TlsCipher(StrEnum):
    """A cipher suite, by its name in the registry of IANA. Those of TLS 1.2 say what key a certificate has.

    >>> TlsCipher("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256").key
    <TlsKey.RSA_2048: 'rsa2048'>
    """

    AES_256 = "TLS_AES_256_GCM_SHA384"
    AES_128 = "TLS_AES_128_GCM_SHA256"
    CHACHA20 = "TLS_CHACHA20_POLY1305_SHA256"
    ECDSA_AES_256 = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    ECDSA_AES_128 = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    ECDSA_CHACHA20 = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
    RSA_AES_256 = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    RSA_AES_128 = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    RSA_CHACHA20 = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"

    @property
    def key(self) -> TlsKey | None:
        """The only key with which it can be spoken; None: any, as with TLS 1.3."""
        return next((key for word, key in _KEY_OF_CIPHER.items() if f"_{word}_" in self.value), None)

    @property
    def version(self) -> TlsVersion:
        """The only version that has it."""
        return TlsVersion.TLS_1_3 if self.key is None else TlsVersion.TLS_1_2


_KEY_OF_CIPHER = MappingProxyType({"ECDSA": TlsKey.ECDSA, "RSA": TlsKey.RSA_2048})


@dataclass(frozen=True, slots=True)
class Tls:
    """What is asked of a server with TLS. Files are PEM.

    ``verify``: whether its certificate must be of an authority in ``ca_file`` (null: of one that this machine
    knows), valid, and for ``server_name`` (null: for the host). ``resumption``: whether a connection may take
    up the session of an earlier one. ``ciphers``: those that are offered, in this order; none: all.
    """

    verify: bool = True
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None
    least_version: TlsVersion = TlsVersion.TLS_1_2
    resumption: bool = True
    ciphers: tuple[TlsCipher, ...] = field(default=(), metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Behind:
    """The server behind an HTTP proxy: its host and port, as the proxy finds it.

    ``authorization``: the `Proxy-Authorization`; null: none.
    """

    authority: str
    authorization: str | None = field(default=None, metadata=OPTIONAL, repr=False)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a subject listens. ``host`` is a literal; for ``unix`` the socket's path, and ``port`` is 0.

    ``tls``: null without it. ``version``: of HTTP/1. ``others``: further addresses of the same name, to which
    connections go in turn. ``proxy``: the server, where the address is that of a proxy.
    """

    host: str
    port: int
    kind: AddressKind = AddressKind.TCP4
    tls: Tls | None = None
    wire: Wire = Wire.HTTP
    version: HttpVersion = HttpVersion.HTTP_1_1
    others: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    proxy: Behind | None = field(default=None, metadata=OPTIONAL)

    @property
    def url(self) -> str:
        """The address as a URL, for people and for external tools."""
        host = f"[{self.host}]" if self.kind is AddressKind.TCP6 else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"
