"""The version of this Prony."""

import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def prony_version() -> str:
    """Return the version of this Prony; `unknown` in a checkout that is not installed."""
    try:
        return version("prony")
    except PackageNotFoundError:
        return "unknown"


# --- prony as a command that Prony starts -----------------------------------------------------------------


def own_command(*arguments: str) -> list[str]:
    """Return the command of this Prony, which takes no module from the folder that it is started in."""
    return [sys.executable, "-P", "-m", "prony", *arguments]
