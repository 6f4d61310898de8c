"""Prony as a command that Prony starts."""

import sys


def own_command(*arguments: str) -> list[str]:
    """Return the command of this Prony, which takes no module from the folder that it is started in."""
    return [sys.executable, "-P", "-m", "prony", *arguments]
