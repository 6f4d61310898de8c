"""The version of this Prony."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def prony_version() -> str:
    """Return the version of this Prony; `unknown` in a checkout that is not installed."""
    try:
        return version("prony")
    except PackageNotFoundError:
        return "unknown"
