"""One request, and the replies that an app must give. Must not know who sends it, or when.

>>> Check(Request(path="/hello"), status=200).request.method
'GET'
"""

from dataclasses import dataclass

__all__ = ["Check", "Contract", "Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``headers`` are sent as they stand; ``keep_alive`` false: a connection for each."""

    method: str = "GET"
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    keep_alive: bool = True


@dataclass(frozen=True, slots=True)
class Check:
    """One exchange that an app must answer so. ``body`` null: any; ``status`` null: 200 to 399."""

    request: Request = Request()
    status: int | None = None
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    """The replies that an app must give. The first check is also what is measured.

    None: the replies of all subjects are compared before the load.
    """

    checks: tuple[Check, ...] = ()
