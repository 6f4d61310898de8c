"""Which values never reach a file: an archive is made to be shown to others.

>>> masked([("Accept", "*/*"), ("Authorization", "Bearer x")])
[['Accept', '*/*'], ['Authorization', '<redacted>']]
"""

from collections.abc import Iterable

__all__ = ["REDACTED", "is_secret", "masked"]

REDACTED = "<redacted>"

_NAMES = frozenset(["authorization", "proxy-authorization", "cookie", "set-cookie"])
_PARTS = ("token", "secret", "key", "password")


def is_secret(header: str) -> bool:
    """Return whether a header's value may be a secret, by its name."""
    name = header.lower()
    return name in _NAMES or any(part in name for part in _PARTS)


def masked(headers: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return headers with the values of secret ones left out."""
    return [[name, REDACTED if is_secret(name) else value] for name, value in headers]
