"""One request, and the replies that an app must give. Must not know who sends it, or when.

>>> Check(Request(path="/hello"), status=200).request.method
'GET'
"""

from dataclasses import dataclass

__all__ = ["Check", "Contract", "Request"]


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
    """One request and the reply that an app must give. ``body`` null: any; ``status`` null: 200 to 399."""

    request: Request = Request()
    status: int | None = None
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    """The replies that an app must give. The request of the first check is also the one that is measured.

    Without checks, the replies of all subjects are compared before the load.
    """

    checks: tuple[Check, ...] = ()
