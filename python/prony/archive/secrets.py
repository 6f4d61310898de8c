"""Values that never reach a file: an archive may be published.

>>> masked(Request(headers=(("Accept", "*/*"), ("Authorization", "Bearer x")))).headers
(('Accept', '*/*'), ('Authorization', '<redacted>'))
"""

from collections.abc import Iterable
from dataclasses import replace

from prony.model.exchange import Request
from prony.model.recording import Target
from prony.model.workload import Workload

REDACTED = "<redacted>"

_NAMES = frozenset(["authorization", "proxy-authorization", "cookie", "set-cookie"])
_PARTS = ("token", "secret", "key", "password")


def is_secret(header: str) -> bool:
    """Return whether a header's value may be a secret, by its name."""
    name = header.lower()
    return name in _NAMES or any(part in name for part in _PARTS)


def masked_target(target: Target) -> Target:
    """Return a target without the password for its proxy."""
    behind = target.proxy
    if behind is None or behind.authorization is None:
        return target
    return replace(target, proxy=replace(behind, authorization=REDACTED))


def masked(request: Request) -> Request:
    """Return a request without the values of secret headers."""
    return replace(request, headers=_masked(request.headers))


def masked_load(load: Workload) -> Workload:
    """Return a load whose request and groups of users are without the values of secret headers."""
    groups = tuple(replace(one, headers=_masked(one.headers)) for one in load.groups)
    return replace(load, request=masked(load.request), groups=groups)


def _masked(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, REDACTED if is_secret(name) else value) for name, value in headers)
