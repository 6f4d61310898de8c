"""Where a subject listens, and what is spoken there. Must not know what listens.

>>> Address("127.0.0.1", 8080).url
'http://127.0.0.1:8080'
"""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Address", "AddressKind", "Wire"]


class Wire(StrEnum):
    """What is spoken on the socket."""

    HTTP = "http"
    FASTCGI = "fastcgi"
    UWSGI = "uwsgi"
    SCGI = "scgi"


class AddressKind(StrEnum):
    """The socket family."""

    TCP4 = "tcp4"
    TCP6 = "tcp6"
    UNIX = "unix"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a subject listens. ``host`` is a literal; for ``unix`` the socket's path, and ``port`` is 0."""

    host: str
    port: int
    kind: AddressKind = AddressKind.TCP4
    tls: bool = False
    wire: Wire = Wire.HTTP

    @property
    def url(self) -> str:
        """The address as a URL, for people and for external tools."""
        host = f"[{self.host}]" if self.kind is AddressKind.TCP6 else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"
